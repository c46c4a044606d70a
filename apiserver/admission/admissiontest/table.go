package admissiontest

import (
	"context"
	"strings"
	"testing"

	"github.com/periplus/periplus/apiserver/admission"
)

// A Case is a write and what is said about it.
type Case struct {
	admission.Attributes
	// Want is in the refusal; "" for none.
	Want string
	// After looks at a write that was not refused.
	After func(t *testing.T, a *admission.Attributes)
}

// Ask lets a plug-in change and judge a write, as the server does.
func Ask(ctx context.Context, p admission.Plugin, a *admission.Attributes) error {
	chain := admission.Chain{p}
	if err := chain.Admit(ctx, a); err != nil {
		return err
	}
	return chain.Validate(ctx, a)
}

// Run asks about each case.
func Run(t *testing.T, p admission.Plugin, cases map[string]Case) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := Ask(t.Context(), p, &c.Attributes)
			switch {
			case c.Want == "" && err != nil, c.Want != "" && (err == nil || !strings.Contains(err.Error(), c.Want)):
				t.Errorf("said %v, want %q", err, c.Want)
			case err == nil && c.After != nil:
				c.After(t, &c.Attributes)
			}
		})
	}
}
