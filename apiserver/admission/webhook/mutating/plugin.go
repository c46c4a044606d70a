package mutating

import (
	"context"
	"fmt"
	"log/slog"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/webhook"
	"github.com/periplus/periplus/base"
)

type plugin struct {
	objects webhook.Objects
	index   *webhook.Index
}

var _ admission.Mutator = (*plugin)(nil)

// New returns the plug-in.
func New(objects webhook.Objects) admission.Plugin {
	services := webhook.Services{Objects: objects}
	return &plugin{objects, webhook.NewIndex(objects, admissionregistrationv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"),
		func(obj runtime.Object) []*webhook.Hook {
			return webhook.Mutating(obj.(*admissionregistrationv1.MutatingWebhookConfiguration), services)
		})}
}

func (*plugin) Name() string { return "MutatingAdmissionWebhook" }

// A memory is what the plug-in knows from the first round of a write.
type memory struct {
	invoked map[string]bool // hooks with policy IfNeeded that were asked, by UID
	again   map[string]bool // those of them that are to be asked again
	last    runtime.Object  // the object after the last hook
}

// asked notes that the object changed after the hooks so far were asked.
func (m *memory) changed() {
	for uid := range m.invoked {
		m.again[uid] = true
		delete(m.invoked, uid)
	}
}

// Admit implements admission.Mutator.
func (p *plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	hooks := p.index.Hooks()
	if len(hooks) == 0 || admission.Exempt(a) || a.Forms == nil {
		return nil
	}
	m, _ := a.Rounds.Memory[p.Name()].(*memory)
	if m == nil {
		m = &memory{invoked: map[string]bool{}, again: map[string]bool{}}
		a.Rounds.Remember(p.Name(), m)
	} else if m.last != nil && !apiequality.Semantic.DeepEqual(m.last, a.Object) {
		m.changed() // by built-in plug-ins, in this round
	}
	asked := false
	round := 0
	if a.Rounds.Second {
		round = 1
	}
	for i, h := range hooks {
		match, err := h.Wanted(ctx, a, p.objects, a.Values)
		if err != nil {
			return err
		}
		if match == nil || a.Rounds.Second && !m.again[h.UID] {
			continue
		}
		asked = true
		changed, err := p.one(ctx, a, h, match, webhook.Turn{Round: round, Index: i})
		if changed {
			m.changed()
			a.Rounds.Wanted = true
		}
		if h.Reinvoke {
			m.invoked[h.UID] = true
		}
		if err != nil {
			return err
		}
	}
	if asked && a.Object != nil && !a.Rounds.Second && a.Rounds.Wanted {
		m.last = a.Object.DeepCopyObject()
	}
	return nil
}

// one asks a hook and applies its patch.
func (p *plugin) one(ctx context.Context, a *admission.Attributes, h *webhook.Hook, m *admission.Match, turn webhook.Turn) (changed bool, err error) {
	var applied []byte
	defer func() { h.NoteMutation(ctx, turn, changed, applied) }()
	patch, err := h.Ask(ctx, a, m, true)
	if err == nil && len(patch) > 0 {
		if changed, err = p.apply(a, h, m, patch); err == nil {
			applied = patch
		}
	}
	if err == nil {
		return changed, nil
	}
	return false, h.Failed(ctx, err, func(err error) {
		h.NoteFailedOpen(ctx, turn, true)
		slog.Default().Warn("mutating webhook could not be called and is ignored", base.KeyComponent, "apiserver", base.KeyName, h.Name, base.KeyError, err)
	})
}

func (p *plugin) apply(a *admission.Attributes, h *webhook.Hook, m *admission.Match, patch []byte) (bool, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return false, &webhook.CallError{Name: h.Name, Err: fmt.Errorf("received undecodable patch in webhook response: %w", err)}
	}
	if len(operations) == 0 {
		return false, nil
	}
	if a.Object == nil {
		return false, apierrors.NewInternalError(fmt.Errorf("admission webhook %q attempted to modify the object, which is not supported for this operation", h.Name))
	}
	gv := m.Resource.GroupVersion()
	before, err := a.Forms.Encode(a.Object, gv, a.Subresource)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	after, err := operations.Apply(before)
	if err != nil {
		return false, apierrors.NewInternalError(err)
	}
	old := a.Object.DeepCopyObject()
	if err := a.Forms.Decode(after, gv, a.Subresource, a.Object); err != nil {
		return false, apierrors.NewInternalError(err)
	}
	return !apiequality.Semantic.DeepEqual(old, a.Object), nil
}
