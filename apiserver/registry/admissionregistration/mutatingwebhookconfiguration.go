package admissionregistration

import (
	"context"
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

func mutatingWebhookConfigurations() *registry.Resource {
	s := kind.Counted(func(obj *admissionv1.MutatingWebhookConfiguration) *[]admissionv1.MutatingWebhook {
		return &obj.Webhooks
	})
	s.Fixed.NoUnconditionalUpdate = true
	s.PrepareUpdate = func(_ context.Context, c, old *admissionv1.MutatingWebhookConfiguration) {
		// An empty list and none are not the same here.
		kind.SetGeneration(c, old, !reflect.DeepEqual(c.Webhooks, old.Webhooks))
	}
	s.DefaultFunc = defaultMutating
	s.ValidateCreate = validateMutating
	s.ValidateChange = func(ctx context.Context, c, _ *admissionv1.MutatingWebhookConfiguration) field.ErrorList {
		return validateMutating(ctx, c)
	}
	s.WarningsFunc = func(_ context.Context, c, _ *admissionv1.MutatingWebhookConfiguration) []string {
		return warnings(c.Webhooks, func(w *admissionv1.MutatingWebhook) []admissionv1.RuleWithOperations { return w.Rules })
	}
	return &registry.Resource{
		GVR:        version.WithResource("mutatingwebhookconfigurations"),
		Kind:       "MutatingWebhookConfiguration",
		Singular:   "mutatingwebhookconfiguration",
		Categories: []string{"api-extensions"},
		New:        kind.Make[admissionv1.MutatingWebhookConfiguration],
		NewList:    kind.Make[admissionv1.MutatingWebhookConfigurationList],
		Strategy:   s,
	}
}
