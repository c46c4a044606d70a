package admissionregistration

import (
	"context"
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func validatingWebhookConfigurations() *registry.Resource {
	s := kind.Counted(func(obj *admissionv1.ValidatingWebhookConfiguration) *[]admissionv1.ValidatingWebhook {
		return &obj.Webhooks
	})
	s.Fixed.NoUnconditionalUpdate = true
	s.PrepareUpdate = func(_ context.Context, c, old *admissionv1.ValidatingWebhookConfiguration) {
		// An empty list and none are not the same here.
		kind.SetGeneration(c, old, !reflect.DeepEqual(c.Webhooks, old.Webhooks))
	}
	s.DefaultFunc = defaultValidating
	s.ValidateCreate = validateValidating
	s.ValidateChange = func(ctx context.Context, c, _ *admissionv1.ValidatingWebhookConfiguration) field.ErrorList {
		return validateValidating(ctx, c)
	}
	s.WarningsFunc = func(_ context.Context, c, _ *admissionv1.ValidatingWebhookConfiguration) []string {
		return warnings(c.Webhooks, func(w *admissionv1.ValidatingWebhook) []admissionv1.RuleWithOperations { return w.Rules })
	}
	return &registry.Resource{
		GVR:        version.WithResource("validatingwebhookconfigurations"),
		Kind:       "ValidatingWebhookConfiguration",
		Singular:   "validatingwebhookconfiguration",
		Categories: []string{"api-extensions"},
		New:        kind.Make[admissionv1.ValidatingWebhookConfiguration],
		NewList:    kind.Make[admissionv1.ValidatingWebhookConfigurationList],
		Strategy:   s,
	}
}
