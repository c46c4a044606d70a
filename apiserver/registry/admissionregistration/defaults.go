package admissionregistration

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// set sets *p to value unless it is set.
func set[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func defaultValidating(c *admissionv1.ValidatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		set(&w.FailurePolicy, admissionv1.Fail)
		set(&w.MatchPolicy, admissionv1.Equivalent)
		set(&w.NamespaceSelector, metav1.LabelSelector{})
		set(&w.ObjectSelector, metav1.LabelSelector{})
		set(&w.TimeoutSeconds, 10)
		client(&w.ClientConfig)
		rules(w.Rules)
	}
}

func defaultMutating(c *admissionv1.MutatingWebhookConfiguration) {
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		set(&w.FailurePolicy, admissionv1.Fail)
		set(&w.MatchPolicy, admissionv1.Equivalent)
		set(&w.NamespaceSelector, metav1.LabelSelector{})
		set(&w.ObjectSelector, metav1.LabelSelector{})
		set(&w.TimeoutSeconds, 10)
		set(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
		client(&w.ClientConfig)
		rules(w.Rules)
	}
}

func client(c *admissionv1.WebhookClientConfig) {
	if c.Service != nil {
		set(&c.Service.Port, 443)
	}
}

func rules(list []admissionv1.RuleWithOperations) {
	for i := range list {
		set(&list[i].Scope, admissionv1.AllScopes)
	}
}

func matchResources(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	set(&m.MatchPolicy, admissionv1.Equivalent)
	set(&m.NamespaceSelector, metav1.LabelSelector{})
	set(&m.ObjectSelector, metav1.LabelSelector{})
	for _, list := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range list {
			set(&list[i].Scope, admissionv1.AllScopes)
		}
	}
}
