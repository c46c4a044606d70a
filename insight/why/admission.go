package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/insight"
)

// admissionRules: what makes pods is not allowed to. The pod does not exist, so only
// its maker's conditions and events tell.
func admissionRules() []Rule {
	return []Rule{
		refusedRule("quota-exceeded", "a quota of the namespace does not allow another pod", `exceeded quota: ([\w.-]+)(.*)`, func(r refusal) *insight.Finding {
			f := &insight.Finding{What: fmt.Sprintf("ResourceQuota %q of namespace %s allows no more:%s", r.match[1], r.namespace(), strings.TrimPrefix(r.match[2], ",")), Mend: []insight.Mend{
				insight.Do("who uses it up?", insight.Kubectl(r.namespace(), "describe quota %s", r.match[1])), insight.Do("allows more", insight.Kubectl(r.namespace(), "edit quota %s", r.match[1]))}}
			if q, ok := insight.Get[*corev1.ResourceQuota](r.s, r.namespace(), r.match[1]); ok {
				for _, name := range sorted(quantities(q.Status.Hard)) {
					used, hard := q.Status.Used[corev1.ResourceName(name)], q.Status.Hard[corev1.ResourceName(name)]
					f.Evidence = append(f.Evidence, fmt.Sprintf("quota %s: %s of %s %s are used", q.Name, used.String(), hard.String(), name))
				}
			}
			return f
		}),
		refusedRule("quota-unspecified", "a quota wants requests or limits that the pod does not state", `failed quota: ([\w.-]+): must specify ([^"]*)`, func(r refusal) *insight.Finding {
			return &insight.Finding{What: fmt.Sprintf("ResourceQuota %q wants every container to state %s", r.match[1], strings.TrimSpace(r.match[2])),
				Mend: []insight.Mend{insight.Do("states it", insight.Kubectl(r.namespace(), "set resources %s --requests=cpu=100m,memory=128Mi --limits=memory=128Mi", insight.RefOf(r.s.Owner(r.object)))),
					insight.Do("or gives containers defaults: a LimitRange", insight.Kubectl(r.namespace(), "explain limitrange.spec.limits"))}}
		}),
		refusedRule("limit-range", "a LimitRange of the namespace does not allow what the pod asks for", `((?:minimum|maximum) [\w.-]+(?: usage)? per \w+ is [^,"\]]*|[\w.-]+ max limit to request ratio per \w+ is [^,"\]]*)`, func(r refusal) *insight.Finding {
			f := &insight.Finding{What: "a LimitRange of the namespace forbids it: " + strings.TrimSpace(r.match[1])}
			for _, l := range insight.All[*corev1.LimitRange](r.s, r.namespace()) {
				f.Mend = append(f.Mend, insight.Do("shows what it allows", insight.Kubectl(r.namespace(), "describe limitrange %s", l.Name)))
			}
			return f
		}),
		refusedRule("pod-security", "the pod does not keep the Pod Security Standard of its namespace", `violates PodSecurity "([^"]+)": (.*)`, func(r refusal) *insight.Finding {
			f := &insight.Finding{What: fmt.Sprintf("namespace %s enforces the Pod Security Standard %q, which the pod does not keep", r.namespace(), r.match[1])}
			depth, start := 0, 0
			text := r.match[2]
			for i, c := range text { // commas in brackets belong to one violation
				switch {
				case c == '(':
					depth++
				case c == ')':
					depth--
				case c == ',' && depth == 0:
					f.Evidence = append(f.Evidence, "violation: "+strings.TrimSpace(text[start:i]))
					start = i + 1
				}
			}
			f.Evidence = append(f.Evidence, "violation: "+strings.TrimSpace(text[start:]))
			f.Mend = append(f.Mend, insight.Do("meets it", insight.Kubectl(r.namespace(), "edit %s", insight.RefOf(r.s.Owner(r.object)))))
			if strings.HasPrefix(r.match[1], "restricted") {
				f.Mend[0] = secure(r)
			}
			return f
		}),
		refusedRule("webhook-denied", "an admission webhook denies the pod", `admission webhook "([^"]+)" denied the request:? ?(.*)`, func(r refusal) *insight.Finding {
			return &insight.Finding{What: fmt.Sprintf("admission webhook %q denies the pod: %s", r.match[1], cmp.Or(r.match[2], "without a reason")), Mend: webhookMends(r.s, r.match[1])[:1]}
		}),
		refusedRule("webhook-failing", "an admission webhook does not answer", `failed calling webhook "([^"]+)": (.*)`, func(r refusal) *insight.Finding {
			return webhookFailing(r.s, r.match[1], r.match[2])
		}),
		refusedRule("policy-denied", "a ValidatingAdmissionPolicy denies the pod", `ValidatingAdmissionPolicy '([^']+)' with binding '([^']+)' denied request: (.*)`, func(r refusal) *insight.Finding {
			return &insight.Finding{What: fmt.Sprintf("ValidatingAdmissionPolicy %q denies the pod: %s", r.match[1], r.match[3]), Mend: []insight.Mend{insight.Do("shows what it wants", "peri kubectl get validatingadmissionpolicy "+r.match[1]+" -o yaml")}}
		}),
		refusedRule("account-missing", "the pods' service account does not exist", `serviceaccount "([^"]+)" not found|error looking up service account [\w.-]+/([\w.-]+):`, func(r refusal) *insight.Finding {
			name := cmp.Or(r.match[1], r.match[2])
			return &insight.Finding{What: fmt.Sprintf("there is no service account %q in namespace %s%s", name, r.namespace(), like(name, names[*corev1.ServiceAccount](r.s, r.namespace()))), Mend: []insight.Mend{makeAccount(r.namespace(), name)}}
		}),
		refusedRule("priority-class-missing", "the pods' PriorityClass does not exist", `no PriorityClass with name ([\w.-]+) was found`, func(r refusal) *insight.Finding {
			return &insight.Finding{What: fmt.Sprintf("there is no PriorityClass %q", r.match[1]), Mend: []insight.Mend{insight.Do("makes it", "peri kubectl create priorityclass "+r.match[1]+" --value=1000")}}
		}),
		refusedRule("runtime-class-unknown", "the pods' RuntimeClass does not exist", `RuntimeClass "([^"]+)" not found|runtimeclasses?\.node\.k8s\.io "([^"]+)" not found`, func(r refusal) *insight.Finding {
			return &insight.Finding{What: fmt.Sprintf("there is no RuntimeClass %q", cmp.Or(r.match[1], r.match[2])), Mend: []insight.Mend{insight.Do("which are there?", "peri kubectl get runtimeclass")}}
		}),
		refusedRule("namespace-terminating", "the namespace is being deleted and takes nothing new", `because it is being terminated|namespace .* is being terminated`, func(r refusal) *insight.Finding {
			return &insight.Finding{What: fmt.Sprintf("namespace %s is being deleted and takes nothing new", r.namespace()), Mend: []insight.Mend{insight.Do("what keeps it?", "peri why namespace/"+r.namespace())}}
		}),
		refusedRule("pod-invalid", "the pods that the template describes are not valid", `Pod "[^"]*" is invalid: (.*)`, func(r refusal) *insight.Finding {
			return &insight.Finding{What: "the template describes a pod that is not valid: " + r.match[1], Mend: []insight.Mend{insight.Do("corrects it", insight.Kubectl(r.namespace(), "edit %s", insight.RefOf(r.s.Owner(r.object))))}}
		}),
		refusedRule("pods-refused", "the API server refuses the pods", `.+`, func(r refusal) *insight.Finding {
			return &insight.Finding{Level: insight.Sign, What: "the API server refuses the pods: " + r.message}
		}),
	}
}

// A refusal is what the API server said to a controller that wanted to make a pod.
type refusal struct {
	s       *insight.Snapshot
	object  insight.Object
	message string
	match   []string
}

func (r refusal) namespace() string { return r.object.GetNamespace() }

// refusedRule matches the newest refusal of a ReplicaSet, Job, StatefulSet or DaemonSet
// that lacks pods.
func refusedRule(name, summary, pattern string, check func(r refusal) *insight.Finding) Rule {
	re := regexp.MustCompile(pattern)
	return on(name, summary, func(s *insight.Snapshot, o insight.Object) []insight.Finding {
		if !lacksPods(o) {
			return nil
		}
		r := refusal{s: s, object: o}
		var evidence []string
		if c := replicaFailure(o); c != "" {
			r.message, evidence = c, []string{"status: ReplicaFailure: " + shorten(c)}
		} else if e := s.LastEvent(o, "FailedCreate"); e != nil {
			r.message, evidence = e.Message, []string{shorten(s.EventLine(e))}
		} else {
			return nil
		}
		if r.match = re.FindStringSubmatch(r.message); r.match == nil {
			return nil
		}
		f := check(r)
		if f == nil {
			return nil
		}
		f.Part, f.Evidence = "pods", append(evidence, f.Evidence...)
		return one(f)
	})
}

func lacksPods(o insight.Object) bool {
	switch o := o.(type) {
	case *appsv1.ReplicaSet:
		return o.Spec.Replicas == nil || o.Status.Replicas < *o.Spec.Replicas
	case *appsv1.StatefulSet:
		return o.Spec.Replicas == nil || o.Status.Replicas < *o.Spec.Replicas
	case *appsv1.DaemonSet:
		return o.Status.CurrentNumberScheduled < o.Status.DesiredNumberScheduled
	case *batchv1.Job:
		return o.Status.Active == 0 && o.Status.CompletionTime == nil
	}
	return false
}

func replicaFailure(o insight.Object) string {
	if r, ok := o.(*appsv1.ReplicaSet); ok {
		for _, c := range r.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				return c.Message
			}
		}
	}
	return ""
}

func quantities(list corev1.ResourceList) map[string]bool {
	out := map[string]bool{}
	for name := range list {
		out[string(name)] = true
	}
	return out
}

// secure is what the restricted standard asks for.
func secure(r refusal) insight.Mend {
	owner := r.s.Owner(r.object)
	w := workload{object: owner, ref: insight.RefOf(owner)}
	var spec corev1.PodSpec
	switch o := owner.(type) {
	case *appsv1.Deployment:
		w.group, w.resource, spec = "apps", "deployments", o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		w.group, w.resource, spec = "apps", "statefulsets", o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		w.group, w.resource, spec = "apps", "daemonsets", o.Spec.Template.Spec
	default:
		return insight.Do("meets it", insight.Kubectl(r.namespace(), "edit %s", w.ref))
	}
	w.path = []string{"spec", "template", "spec"}
	var containers []any
	for _, c := range spec.Containers {
		containers = append(containers, map[string]any{"name": c.Name, "securityContext": map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}}})
	}
	return w.set(map[string]any{"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}, "containers": containers}, "meets the restricted standard, if the image can run as another user than root")
}

// A hook is an admission webhook with its configuration.
type hook struct {
	kind, config string
	client       admissionv1.WebhookClientConfig
	ignore       bool
}

func findHook(s *insight.Snapshot, name string) (hook, bool) {
	for _, c := range insight.All[*admissionv1.ValidatingWebhookConfiguration](s, "") {
		for _, w := range c.Webhooks {
			if w.Name == name {
				return hook{"validatingwebhookconfiguration", c.Name, w.ClientConfig, w.FailurePolicy != nil && *w.FailurePolicy == admissionv1.Ignore}, true
			}
		}
	}
	for _, c := range insight.All[*admissionv1.MutatingWebhookConfiguration](s, "") {
		for _, w := range c.Webhooks {
			if w.Name == name {
				return hook{"mutatingwebhookconfiguration", c.Name, w.ClientConfig, w.FailurePolicy != nil && *w.FailurePolicy == admissionv1.Ignore}, true
			}
		}
	}
	return hook{}, false
}

func webhookMends(s *insight.Snapshot, name string) []insight.Mend {
	h, ok := findHook(s, name)
	if !ok {
		return []insight.Mend{insight.Do("which configuration has it?", "peri kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations")}
	}
	return []insight.Mend{
		insight.Do("shows what it looks at", fmt.Sprintf("peri kubectl get %s %s -o yaml", h.kind, h.config)),
		insight.Do("goes on without it while it fails (failurePolicy: Ignore)", fmt.Sprintf("peri kubectl edit %s %s", h.kind, h.config)),
	}
}

// webhookFailing says why a webhook does not answer.
func webhookFailing(s *insight.Snapshot, name, message string) *insight.Finding {
	f := &insight.Finding{What: fmt.Sprintf("admission webhook %q does not answer, and nothing is made without its answer", name), Why: strings.TrimSpace(message), Mend: webhookMends(s, name)}
	h, ok := findHook(s, name)
	if !ok || h.client.Service == nil {
		return f
	}
	ref := h.client.Service
	svc, found := insight.Get[*corev1.Service](s, ref.Namespace, ref.Name)
	switch {
	case !found:
		f.What = fmt.Sprintf("admission webhook %q cannot be called: there is no Service %s/%s", name, ref.Namespace, ref.Name)
		f.Mend = append(f.Mend, insight.Do("if what it belonged to is gone", fmt.Sprintf("peri kubectl delete %s %s", h.kind, h.config)))
	case ref.Namespace == s.Namespace && s.ReadyEndpoints(svc) == 0:
		f.What = fmt.Sprintf("admission webhook %q cannot be called: Service %s/%s has no ready endpoint", name, ref.Namespace, ref.Name)
	}
	if found {
		f.Mend = slices.Insert(f.Mend, 0, insight.Do("goes on from there", fmt.Sprintf("peri why -n %s service/%s", ref.Namespace, ref.Name)))
	}
	return f
}
