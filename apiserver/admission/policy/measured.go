package policy

import (
	"context"
	"strings"
	"time"

	"github.com/periplus/periplus/apiserver/request"
)

// ErrorKind is what upstream's metrics call an error of an expression.
func ErrorKind(err error) string {
	switch {
	case err == nil:
		return "no_error"
	case strings.Contains(err.Error(), "compilation error") || strings.Contains(err.Error(), "compilation failed"):
		return "compile_error"
	case strings.Contains(err.Error(), "cost limit") || strings.Contains(err.Error(), "out of budget"):
		return "out_of_budget"
	}
	return "invalid_error"
}

// Mutated counts what came of one invocation of a mutating policy.
func Mutated(ctx context.Context, policy, binding string, errs []error, start time.Time) {
	m := request.Metrics(ctx)
	if len(errs) == 0 {
		m.Mutated(policy, binding, ErrorKind(nil), time.Since(start))
	}
	for _, err := range errs {
		m.Mutated(policy, binding, ErrorKind(err), time.Since(start))
	}
}
