package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/periplus/periplus/apiserver/request"
)

// The prefixes of what the audit log is told of hooks, as upstream.
const (
	mutationPrefix   = "mutation.webhook.admission.k8s.io/"
	patchPrefix      = "patch.webhook.admission.k8s.io/"
	validationPrefix = "validating.webhook.admission.k8s.io/"
	failedOpenPrefix = "failed-open."
)

// A Turn is when a hook was asked: in which round, and the how manieth of all.
type Turn struct{ Round, Index int }

func (t Turn) key(prefix string) string {
	return fmt.Sprintf("%sround_%d_index_%d", prefix, t.Round, t.Index)
}

// NoteMutation tells the audit log whether a mutating hook changed the object and, where
// objects are logged too, how. patch is JSON; nil: there was none that was applied.
func (h *Hook) NoteMutation(ctx context.Context, t Turn, changed bool, patch []byte) {
	log, objects, _ := request.Audited(ctx)
	if log == nil {
		return
	}
	annotate := func(prefix string, value any) {
		if data, err := json.Marshal(value); err == nil {
			log.Annotate(t.key(prefix), string(data))
		}
	}
	if objects && patch != nil {
		annotate(patchPrefix, struct {
			Configuration string          `json:"configuration"`
			Webhook       string          `json:"webhook"`
			Patch         json.RawMessage `json:"patch,omitempty"`
			PatchType     string          `json:"patchType,omitempty"`
		}{h.Configuration, h.Name, patch, "JSONPatch"})
	}
	annotate(mutationPrefix, struct {
		Configuration string `json:"configuration"`
		Webhook       string `json:"webhook"`
		Mutated       bool   `json:"mutated"`
	}{h.Configuration, h.Name, changed})
}

// NoteFailedOpen tells the audit log that a hook could not be asked and is ignored.
func (h *Hook) NoteFailedOpen(ctx context.Context, t Turn, mutating bool) {
	prefix := validationPrefix
	if mutating {
		prefix = mutationPrefix
	}
	request.Annotate(ctx, t.key(failedOpenPrefix+prefix), h.Name)
}
