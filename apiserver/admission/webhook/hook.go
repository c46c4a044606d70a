package webhook

import (
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/admission"
)

// A Hook is one webhook of a configuration, ready to be asked.
type Hook struct {
	UID           string // of the configuration, and the hook's place in it
	Configuration string
	Name          string
	Ignore        bool // failurePolicy: what cannot be asked is taken as a yes
	Reinvoke      bool // reinvocationPolicy IfNeeded
	NoDryRun      bool // has side effects: cannot be asked about dry runs
	Timeout       time.Duration
	Reviews       []string // versions of AdmissionReview

	about      admission.Criteria
	conditions func() *conditions
	client     admissionregistrationv1.WebhookClientConfig
	connect    func() (*Connection, error)
}

// common are the fields that both kinds of webhooks have.
type common struct {
	Name                    string
	ClientConfig            admissionregistrationv1.WebhookClientConfig
	Rules                   []admissionregistrationv1.RuleWithOperations
	FailurePolicy           *admissionregistrationv1.FailurePolicyType
	MatchPolicy             *admissionregistrationv1.MatchPolicyType
	NamespaceSelector       *metav1.LabelSelector
	ObjectSelector          *metav1.LabelSelector
	SideEffects             *admissionregistrationv1.SideEffectClass
	TimeoutSeconds          *int32
	AdmissionReviewVersions []string
	MatchConditions         []admissionregistrationv1.MatchCondition
	Reinvocation            *admissionregistrationv1.ReinvocationPolicyType
}

// Mutating returns the hooks of a configuration.
func Mutating(c *admissionregistrationv1.MutatingWebhookConfiguration, services Services) []*Hook {
	out := make([]*Hook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		out[i] = newHook(c, i, "mutating", services, common{w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector,
			w.ObjectSelector, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions, w.ReinvocationPolicy})
	}
	return out
}

// Validating returns the hooks of a configuration.
func Validating(c *admissionregistrationv1.ValidatingWebhookConfiguration, services Services) []*Hook {
	out := make([]*Hook, len(c.Webhooks))
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		out[i] = newHook(c, i, "validating", services, common{w.Name, w.ClientConfig, w.Rules, w.FailurePolicy, w.MatchPolicy, w.NamespaceSelector,
			w.ObjectSelector, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.MatchConditions, nil})
	}
	return out
}

func newHook(owner metav1.Object, i int, kind string, services Services, w common) *Hook {
	h := &Hook{
		UID: fmt.Sprintf("%s/%s/%d", owner.GetUID(), w.Name, i), Configuration: owner.GetName(), Name: w.Name,
		Ignore:   is(w.FailurePolicy, admissionregistrationv1.Ignore),
		Reinvoke: is(w.Reinvocation, admissionregistrationv1.IfNeededReinvocationPolicy),
		NoDryRun: !is(w.SideEffects, admissionregistrationv1.SideEffectClassNone) && !is(w.SideEffects, admissionregistrationv1.SideEffectClassNoneOnDryRun),
		Timeout:  10 * time.Second, Reviews: w.AdmissionReviewVersions,
		about: admission.Criteria{
			Exact: is(w.MatchPolicy, admissionregistrationv1.Exact), Rules: admission.Unnamed(w.Rules),
			Namespaces: admission.Selector(w.NamespaceSelector), Objects: admission.Selector(w.ObjectSelector),
		},
		client: w.ClientConfig,
	}
	if w.TimeoutSeconds != nil {
		h.Timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	if len(w.MatchConditions) > 0 {
		h.conditions = sync.OnceValue(func() *conditions { return compile(w.Name, kind, w.FailurePolicy, w.MatchConditions) })
	}
	h.connect = sync.OnceValues(func() (*Connection, error) { return Connect(&h.client, services) })
	return h
}

func is[T comparable](p *T, value T) bool { return p != nil && *p == value }
