package validating

import (
	"context"
	"log/slog"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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

var _ admission.Validator = (*plugin)(nil)

// New returns the plug-in.
func New(objects webhook.Objects) admission.Plugin {
	services := webhook.Services{Objects: objects}
	return &plugin{objects, webhook.NewIndex(objects, admissionregistrationv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"),
		func(obj runtime.Object) []*webhook.Hook {
			return webhook.Validating(obj.(*admissionregistrationv1.ValidatingWebhookConfiguration), services)
		})}
}

func (*plugin) Name() string { return "ValidatingAdmissionWebhook" }

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	hooks := p.index.Hooks()
	if len(hooks) == 0 || admission.Exempt(a) || a.Forms == nil {
		return nil
	}
	type call struct {
		hook  *webhook.Hook
		match *admission.Match
		err   error
	}
	var calls []*call
	values := a.Settled()
	for _, h := range hooks {
		m, err := h.Wanted(ctx, a, p.objects, values)
		if err != nil {
			return err
		}
		if m != nil {
			calls = append(calls, &call{hook: h, match: m})
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() {
			_, err := c.hook.Ask(ctx, a, c.match, false)
			if err != nil {
				c.err = c.hook.Failed(ctx, err, func(err error) {
					c.hook.NoteFailedOpen(ctx, webhook.Turn{Index: i}, false)
					slog.Default().Warn("validating webhook could not be called and is ignored", base.KeyComponent, "apiserver", base.KeyName, c.hook.Name, base.KeyError, err)
				})
			}
		})
	}
	all.Wait()
	for _, c := range calls {
		if c.err != nil {
			return c.err
		}
	}
	return nil
}
