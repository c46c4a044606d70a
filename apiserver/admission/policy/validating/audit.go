package validating

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/periplus/periplus/apiserver/request"
)

// A failure is what the audit log is told of a violation, in upstream's form.
type failure struct {
	Message           string                                     `json:"message"`
	Policy            string                                     `json:"policy"`
	Binding           string                                     `json:"binding"`
	ExpressionIndex   int                                        `json:"expressionIndex"`
	ValidationActions []admissionregistrationv1.ValidationAction `json:"validationActions"`
}

// A record collects what the audit log is told of one write.
type record struct {
	failures []failure
	notes    map[string][]string // by policy and key; of several bindings or parameters
}

func (r *record) add(policy string, notes []note) {
	for _, n := range notes {
		if r.notes == nil {
			r.notes = map[string][]string{}
		}
		if key := policy + "/" + n.key; !slices.Contains(r.notes[key], n.value) {
			r.notes[key] = append(r.notes[key], n.value)
		}
	}
}

// mostFailures is how many violations of one write are written down.
const mostFailures = 64

// publish tells the audit log.
func (r *record) publish(ctx context.Context) {
	for key, values := range r.notes {
		request.Annotate(ctx, key, strings.Join(values, ", "))
	}
	if len(r.failures) == 0 {
		return
	}
	if data, err := json.Marshal(r.failures[:min(len(r.failures), mostFailures)]); err == nil {
		request.Annotate(ctx, "validation.policy.admission.k8s.io/validation_failure", string(data))
	}
}
