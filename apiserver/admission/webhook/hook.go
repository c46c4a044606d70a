package webhook

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
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

	exact      bool
	rules      []admissionregistrationv1.RuleWithOperations
	namespaces labels.Selector
	objects    labels.Selector
	conditions func() *conditions
	client     admissionregistrationv1.WebhookClientConfig
	connect    func() (*connection, error)
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
		exact: is(w.MatchPolicy, admissionregistrationv1.Exact), rules: w.Rules,
		namespaces: selector(w.NamespaceSelector), objects: selector(w.ObjectSelector), client: w.ClientConfig,
	}
	if w.TimeoutSeconds != nil {
		h.Timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	if len(w.MatchConditions) > 0 {
		h.conditions = sync.OnceValue(func() *conditions { return compile(w.Name, kind, w.FailurePolicy, w.MatchConditions) })
	}
	h.connect = sync.OnceValues(func() (*connection, error) { return newConnection(&h.client, services) })
	return h
}

func is[T comparable](p *T, value T) bool { return p != nil && *p == value }

// selector parses a selector that validation has accepted; nothing is selected by
// one that it has not.
func selector(s *metav1.LabelSelector) labels.Selector {
	if s == nil {
		return labels.Everything()
	}
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// A Match says in which version of the resource a hook is asked.
type Match struct {
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
}

// Exempt reports whether no hook is asked about a write: the configurations of
// admission themselves, so that a broken one can be mended.
func Exempt(a *admission.Attributes) bool {
	return a.Resource.Group == admissionregistrationv1.GroupName
}

// Match returns the version in which the hook is to be asked about a, nil if it is not.
func (h *Hook) Match(a *admission.Attributes, objects registry.Reader) (*Match, error) {
	m := h.matchRules(a)
	if m == nil || !h.matchObjects(a) {
		return nil, nil
	}
	if ok, err := h.matchNamespace(a, objects); !ok || err != nil {
		return nil, err
	}
	return m, nil
}

func (h *Hook) matchRules(a *admission.Attributes) *Match {
	asked := a.RequestVersion()
	if h.matchResource(a, asked.WithResource(a.Resource.Resource)) {
		return h.matched(a, asked)
	}
	if h.exact || a.Forms == nil {
		return nil
	}
	for _, gv := range a.Forms.Versions() {
		if gv != asked && h.matchResource(a, gv.WithResource(a.Resource.Resource)) {
			return h.matched(a, gv)
		}
	}
	return nil
}

func (h *Hook) matched(a *admission.Attributes, gv schema.GroupVersion) *Match {
	return &Match{Resource: gv.WithResource(a.Resource.Resource), Kind: a.KindIn(gv)}
}

func (h *Hook) matchResource(a *admission.Attributes, gvr schema.GroupVersionResource) bool {
	return slices.ContainsFunc(h.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return matchScope(r.Scope, a) && matchOperation(r.Operations, a.Operation) && either(r.APIGroups, gvr.Group) &&
			either(r.APIVersions, gvr.Version) && matchPath(r.Resources, gvr.Resource, a.Subresource)
	})
}

func either(list []string, wanted string) bool {
	return slices.Contains(list, "*") || slices.Contains(list, wanted)
}

func matchOperation(list []admissionregistrationv1.OperationType, op admission.Operation) bool {
	return slices.Contains(list, admissionregistrationv1.OperationAll) || slices.Contains(list, admissionregistrationv1.OperationType(op))
}

func matchPath(list []string, resource, subresource string) bool {
	return slices.ContainsFunc(list, func(path string) bool {
		r, s, _ := strings.Cut(path, "/")
		return (r == "*" || r == resource) && (s == "*" || s == subresource)
	})
}

func isNamespace(a *admission.Attributes) bool {
	return a.Resource.Group == "" && a.Resource.Resource == "namespaces"
}

func matchScope(scope *admissionregistrationv1.ScopeType, a *admission.Attributes) bool {
	clusterWide := a.Namespace == "" || isNamespace(a)
	switch {
	case scope == nil || *scope == admissionregistrationv1.AllScopes:
		return true
	case *scope == admissionregistrationv1.ClusterScope:
		return clusterWide
	}
	return !clusterWide
}

func (h *Hook) matchObjects(a *admission.Attributes) bool {
	return h.objects.Empty() || labelled(a.Object, h.objects) || labelled(a.Old, h.objects)
}

func labelled(obj runtime.Object, s labels.Selector) bool {
	m, ok := obj.(metav1.ObjectMetaAccessor)
	return ok && s.Matches(labels.Set(m.GetObjectMeta().GetLabels()))
}

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// matchNamespace looks at the labels of the object's namespace, or of the object
// if it is a namespace itself. Other objects of the cluster always match.
func (h *Hook) matchNamespace(a *admission.Attributes, objects registry.Reader) (bool, error) {
	if h.namespaces.Empty() || a.Namespace == "" && !isNamespace(a) {
		return true, nil
	}
	name := a.Namespace
	if isNamespace(a) {
		if name = a.Name; a.Object != nil && a.Subresource == "" {
			return labelled(a.Object, h.namespaces), nil
		}
	}
	ns, err := objects.Get(namespaces, "", name)
	if err != nil {
		return false, err
	}
	return labelled(ns, h.namespaces), nil
}
