package why

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	affinity "k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// scheduleRules: no node takes the pod. The scheduler's own message says why; the
// rules add whose limit it is, and what would do.
func scheduleRules() []Rule {
	return []Rule{
		on("scheduling-gate", "the pod waits for its scheduling gates", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if len(p.Spec.SchedulingGates) == 0 || p.Spec.NodeName != "" {
				return nil
			}
			var gates []string
			for _, g := range p.Spec.SchedulingGates {
				gates = append(gates, g.Name)
			}
			return one(&insight.Finding{What: "the pod waits until its scheduling gates are removed: " + strings.Join(gates, ", "), Why: "A controller should remove them; if none does, the pod waits for ever.",
				Evidence: conditionLine(p, corev1.PodScheduled),
				Mend:     []insight.Mend{insight.JSONPatched("", "v1", "pods", insight.RefOf(p), `[{"op":"remove","path":"/spec/schedulingGates"}]`, "removes them: is all that they stand for done?")}})
		}),
		on("scheduler-missing", "the scheduler that the pod names does not look at it", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			name := cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName)
			if p.Spec.NodeName != "" || ended(p) || conditions.Pod(&p.Status, corev1.PodScheduled) != nil || s.LastEvent(p, "FailedScheduling") != nil || s.Now.Sub(p.CreationTimestamp.Time) < patience || len(p.Spec.SchedulingGates) > 0 {
				return nil
			}
			f := &insight.Finding{What: fmt.Sprintf("scheduler %q has not looked at the pod: it does not run, or has another name", name), Evidence: []string{"spec: schedulerName is " + name, "status: there is no condition PodScheduled"}}
			if name != corev1.DefaultSchedulerName {
				f.Mend = []insight.Mend{workloadOf(s, p).set(map[string]any{"schedulerName": corev1.DefaultSchedulerName}, "lets the cluster's scheduler do it")}
			}
			return one(f)
		}),
		on("node-name-missing", "the pod is bound to a node that does not exist", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			if p.Spec.NodeName == "" || ended(p) || !insight.Missing[*corev1.Node](s, "", p.Spec.NodeName) {
				return nil
			}
			return one(&insight.Finding{What: fmt.Sprintf("the pod belongs to node %q, which does not exist%s", p.Spec.NodeName, like(p.Spec.NodeName, names[*corev1.Node](s, ""))), Evidence: []string{"spec: nodeName is " + p.Spec.NodeName},
				Mend: []insight.Mend{workloadOf(s, p).edit("remove nodeName, so that the scheduler chooses")}})
		}),
		unschedulable("no-nodes", "the cluster has no nodes", `no nodes available|0/0 nodes are available`, "nodes", func(u unscheduled) *insight.Finding {
			return &insight.Finding{What: "the cluster has no nodes", Mend: []insight.Mend{insight.Do("on a machine: makes it a node", "peri agent --server https://SERVER:6443 --token TOKEN")}}
		}),
		unschedulable("node-cpu", "no node has as much CPU free as the pod requests", `Insufficient cpu`, "cpu", func(u unscheduled) *insight.Finding { return u.short(corev1.ResourceCPU) }),
		unschedulable("node-memory", "no node has as much memory free as the pod requests", `Insufficient memory`, "memory", func(u unscheduled) *insight.Finding { return u.short(corev1.ResourceMemory) }),
		unschedulable("node-resource", "no node has what the pod requests", `Insufficient ([\w./-]*\w)`, "resource", func(u unscheduled) *insight.Finding {
			if name := u.match[1]; name != "cpu" && name != "memory" {
				return u.short(corev1.ResourceName(name))
			}
			return nil
		}),
		unschedulable("node-pods", "the nodes run as many pods as they may", `Too many pods`, "pods", func(u unscheduled) *insight.Finding {
			return &insight.Finding{What: "the nodes run as many pods as they may", Evidence: u.used(corev1.ResourcePods)}
		}),
		unschedulable("node-taint", "the nodes' taints keep the pod away", `untolerated taint`, "taint", taint),
		unschedulable("node-cordoned", "the nodes take no new pods", `were unschedulable`, "cordon", func(u unscheduled) *insight.Finding {
			f := &insight.Finding{What: "nodes that would do take no new pods: they are cordoned"}
			for _, n := range insight.All[*corev1.Node](u.s, "") {
				if n.Spec.Unschedulable {
					f.Evidence = append(f.Evidence, "spec: node "+n.Name+" is unschedulable")
					f.Mend = append(f.Mend, uncordon(n))
				}
			}
			return f
		}),
		unschedulable("node-selector", "no node has the labels that the pod asks for", `didn't match Pod's node affinity/selector|didn't match node selector`, "selector", selector),
		unschedulable("pod-affinity", "no node runs the pods that the pod wants to be near to", `didn't match pod affinity rules`, "affinity", func(u unscheduled) *insight.Finding {
			f := &insight.Finding{What: "the pod wants to be near to other pods, and no node that would do runs any", Mend: []insight.Mend{workloadOf(u.s, u.pod).edit("prefer it instead (preferredDuringScheduling…), or correct its labels")}}
			if a := u.pod.Spec.Affinity; a != nil && a.PodAffinity != nil {
				for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
					f.Evidence = append(f.Evidence, fmt.Sprintf("spec: podAffinity wants %s by %s", formatSelector(t.LabelSelector), t.TopologyKey))
				}
			}
			return f
		}),
		unschedulable("pod-anti-affinity", "every node runs a pod from which the pod must keep away", `anti-affinity rules`, "anti-affinity", func(u unscheduled) *insight.Finding {
			f := &insight.Finding{What: "every node that would do runs a pod from which this one must keep away", Why: "With required anti-affinity there can be only as many replicas as nodes, and none more while a new revision is rolled out.",
				Mend: []insight.Mend{workloadOf(u.s, u.pod).edit("prefer it instead (preferredDuringScheduling…)")}}
			if a := u.pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
				for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
					f.Evidence = append(f.Evidence, fmt.Sprintf("spec: podAntiAffinity keeps away from %s by %s", formatSelector(t.LabelSelector), t.TopologyKey))
				}
			}
			return f
		}),
		unschedulable("topology-spread", "every node would make the spread of the pods too uneven", `topology spread constraints`, "spread", func(u unscheduled) *insight.Finding {
			f := &insight.Finding{What: "every node that would do would make the pods' spread too uneven", Mend: []insight.Mend{workloadOf(u.s, u.pod).edit("set whenUnsatisfiable: ScheduleAnyway, or a greater maxSkew")}}
			for _, t := range u.pod.Spec.TopologySpreadConstraints {
				f.Evidence = append(f.Evidence, fmt.Sprintf("spec: maxSkew %d over %s, %s", t.MaxSkew, t.TopologyKey, t.WhenUnsatisfiable))
			}
			if strings.Contains(u.message, "missing required label") {
				f.Why = "Nodes lack the label that the constraint counts by."
			}
			return f
		}),
		unschedulable("host-port", "the host port that the pod wants is taken on every node", `didn't have free ports`, "host port", hostPort),
		unschedulable("volume-node", "the pod's volume can only be used on a node that cannot take it", `PersistentVolume's node affinity|volume node affinity conflict|no available volume zone`, "volume", volumeNode),
		unschedulable("volume-unbound", "a claim of the pod is not bound", `unbound immediate PersistentVolumeClaims|didn't find available persistent volumes`, "claim", func(u unscheduled) *insight.Finding {
			f := &insight.Finding{Level: insight.Effect, What: "a claim of the pod is not bound to a volume"}
			for _, name := range insight.PodClaims(u.pod) {
				if c, ok := insight.Get[*corev1.PersistentVolumeClaim](u.s, u.pod.Namespace, name); ok && c.Status.Phase != corev1.ClaimBound {
					f.Evidence = append(f.Evidence, fmt.Sprintf("status: claim %s is %s", name, c.Status.Phase))
				}
			}
			return f
		}),
		unschedulable("volume-limit", "the nodes have as many volumes attached as they can have", `exceed max volume count`, "volumes", func(u unscheduled) *insight.Finding {
			return &insight.Finding{What: "the nodes have as many volumes attached as they can have"}
		}),
		unschedulable("volume-in-use", "another pod uses the volume that only one pod may use", `ReadWriteOncePod access mode already in-use`, "volume", func(u unscheduled) *insight.Finding {
			f := &insight.Finding{What: "another pod uses a volume that only one pod may use (ReadWriteOncePod)"}
			for _, other := range insight.All[*corev1.Pod](u.s, u.pod.Namespace) {
				if other.Name != u.pod.Name && !ended(other) && slices.ContainsFunc(insight.PodClaims(other), func(n string) bool { return slices.Contains(insight.PodClaims(u.pod), n) }) {
					f.Evidence = append(f.Evidence, "spec: pod "+other.Name+" mounts it")
				}
			}
			return f
		}),
		on("unschedulable", "no node takes the pod", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			u, ok := unscheduledOf(s, p)
			if !ok || len(p.Spec.SchedulingGates) > 0 || knownReason.MatchString(u.message) || strings.Contains(u.message, "persistentvolumeclaim") {
				return nil
			}
			return one(&insight.Finding{Level: insight.Sign, What: "no node takes the pod: " + u.message, Evidence: u.evidence})
		}),
	}
}

var knownReason = regexp.MustCompile(`Insufficient|Too many pods|taint|unschedulable|affinity|topology spread|free ports|volume|PersistentVolume|no nodes|0/0 nodes`)

// unscheduled is a pod that no node takes, with the scheduler's words.
type unscheduled struct {
	s        *insight.Snapshot
	pod      *corev1.Pod
	message  string
	evidence []string
	match    []string
}

func unscheduledOf(s *insight.Snapshot, p *corev1.Pod) (unscheduled, bool) {
	u := unscheduled{s: s, pod: p}
	if p.Spec.NodeName != "" || ended(p) {
		return u, false
	}
	if c := conditions.Pod(&p.Status, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse && c.Reason != corev1.PodReasonSchedulingGated {
		u.message, u.evidence = c.Message, []string{"status: PodScheduled is False: " + c.Message}
	} else if e := s.LastEvent(p, "FailedScheduling"); e != nil {
		u.message, u.evidence = e.Message, []string{s.EventLine(e)}
	}
	// What preemption could not do is said of the same nodes again.
	u.message, _, _ = strings.Cut(u.message, " preemption:")
	return u, u.message != ""
}

// unschedulable makes a rule for one of the reasons in the scheduler's message.
func unschedulable(name, summary, pattern, part string, check func(u unscheduled) *insight.Finding) Rule {
	re := regexp.MustCompile(pattern)
	return on(name, summary, func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
		u, ok := unscheduledOf(s, p)
		if !ok {
			return nil
		}
		var out []insight.Finding
		for _, m := range re.FindAllStringSubmatch(u.message, -1) {
			u.match = m
			f := check(u)
			if f == nil {
				continue
			}
			f.Part, f.Evidence = part, append(slices.Clone(u.evidence), f.Evidence...)
			out = append(out, *f)
			if len(m) == 1 {
				break
			}
		}
		return out
	})
}

// request is what a pod asks for.
func request(p *corev1.Pod, name corev1.ResourceName) resource.Quantity {
	return resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})[name]
}

// used says how full each node is.
func (u unscheduled) used(name corev1.ResourceName) []string {
	var out []string
	for _, n := range insight.All[*corev1.Node](u.s, "") {
		sum, pods := resource.Quantity{}, 0
		for _, p := range insight.All[*corev1.Pod](u.s, "") {
			if p.Spec.NodeName == n.Name && !ended(p) {
				sum.Add(request(p, name))
				pods++
			}
		}
		room := n.Status.Allocatable[name]
		if name == corev1.ResourcePods {
			out = append(out, fmt.Sprintf("node %s: %d of %s pods run", n.Name, pods, room.String()))
			continue
		}
		out = append(out, fmt.Sprintf("node %s: %s of %s %s are requested by %s", n.Name, sum.String(), room.String(), name, plural(pods, "pod")))
	}
	return out
}

func (u unscheduled) short(name corev1.ResourceName) *insight.Finding {
	want := request(u.pod, name)
	largest := resource.Quantity{}
	for _, n := range insight.All[*corev1.Node](u.s, "") {
		if room := n.Status.Allocatable[name]; room.Cmp(largest) > 0 {
			largest = room
		}
	}
	w := workloadOf(u.s, u.pod)
	f := &insight.Finding{What: fmt.Sprintf("the pod requests %s %s, and no node that would do has as much free", want.String(), name), Evidence: u.used(name)}
	switch {
	case largest.IsZero():
		f.What = fmt.Sprintf("the pod requests %s of %s, and no node has any", want.String(), name)
		f.Why = "Devices are offered by a plug-in on the node: it may not run."
		f.Mend = []insight.Mend{w.edit("remove the request")}
		return f
	case want.Cmp(largest) > 0:
		f.What = fmt.Sprintf("the pod requests %s %s, and the largest node has %s", want.String(), name, largest.String())
		f.Why = "It cannot run on any node of this cluster, however empty."
	}
	f.Mend = []insight.Mend{
		w.change("asks for less", "set resources %s --requests="+string(name)+"=LESS"),
		insight.Do("who requests most?", fmt.Sprintf("peri kubectl get pods -A --sort-by=.spec.nodeName -o custom-columns=NODE:.spec.nodeName,POD:.metadata.name,REQUEST:.spec.containers[*].resources.requests.%s", name)),
	}
	return f
}

func taint(u unscheduled) *insight.Finding {
	f := &insight.Finding{What: "the nodes' taints keep the pod away"}
	for _, n := range insight.All[*corev1.Node](u.s, "") {
		for _, t := range n.Spec.Taints {
			if t.Effect == corev1.TaintEffectPreferNoSchedule || slices.ContainsFunc(u.pod.Spec.Tolerations, func(have corev1.Toleration) bool { return tolerates(have, t) }) {
				continue
			}
			text := t.Key
			if t.Value != "" {
				text += "=" + t.Value
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("spec: node %s has taint %s:%s", n.Name, text, t.Effect))
			if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
				f.Why = "A taint node.kubernetes.io/… is set by the cluster itself, as long as the node is not well."
				f.Mend = append(f.Mend, insight.Do("what ails the node?", "peri why node/"+n.Name))
				continue
			}
			toleration := map[string]any{"key": t.Key, "operator": "Exists", "effect": string(t.Effect)}
			f.Mend = append(f.Mend, workloadOf(u.s, u.pod).set(map[string]any{"tolerations": append(tolerationsOf(u.pod), toleration)}, "lets the pod onto such nodes"),
				insight.Do("or takes the taint away", fmt.Sprintf("peri kubectl taint node %s %s:%s-", n.Name, t.Key, t.Effect)))
		}
	}
	return f
}

// tolerationsOf are those that the pod's author wrote.
func tolerationsOf(p *corev1.Pod) []any {
	var out []any
	for _, t := range p.Spec.Tolerations {
		if strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			continue
		}
		m := map[string]any{"key": t.Key, "operator": cmp.Or(string(t.Operator), "Equal")}
		if t.Value != "" {
			m["value"] = t.Value
		}
		if t.Effect != "" {
			m["effect"] = string(t.Effect)
		}
		out = append(out, m)
	}
	return out
}

func tolerates(have corev1.Toleration, t corev1.Taint) bool {
	if have.Effect != "" && have.Effect != t.Effect || have.Key != "" && have.Key != t.Key {
		return false
	}
	return have.Operator == corev1.TolerationOpExists || have.Value == t.Value
}

func selector(u unscheduled) *insight.Finding {
	f := &insight.Finding{What: "no node has the labels that the pod asks for"}
	nodes := insight.All[*corev1.Node](u.s, "")
	w := workloadOf(u.s, u.pod)
	for _, key := range sorted(u.pod.Spec.NodeSelector) {
		value := u.pod.Spec.NodeSelector[key]
		var have []string
		for _, n := range nodes {
			if v, ok := n.Labels[key]; ok && !slices.Contains(have, v) {
				have = append(have, v)
			}
		}
		if slices.Contains(have, value) {
			continue
		}
		f.What = fmt.Sprintf("no node has the label %s=%s that the pod asks for", key, value)
		if len(have) > 0 {
			f.Evidence = append(f.Evidence, fmt.Sprintf("nodes have %s: %s", key, strings.Join(have, ", ")))
		} else {
			f.Evidence = append(f.Evidence, "no node has a label "+key)
		}
		f.Mend = append(f.Mend, insight.Do("labels a node", fmt.Sprintf("peri kubectl label node NODE %s=%s", key, value)))
	}
	if required, err := affinity.NewNodeSelector(requiredNodes(u.pod)); err == nil && len(u.pod.Spec.NodeSelector) == 0 {
		for _, n := range nodes {
			if !required.Match(n) {
				f.Evidence = append(f.Evidence, fmt.Sprintf("node %s does not match the pod's node affinity", n.Name))
			}
		}
	}
	f.Mend = append(f.Mend, w.edit("correct nodeSelector or affinity"))
	return f
}

func requiredNodes(p *corev1.Pod) *corev1.NodeSelector {
	if a := p.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return &corev1.NodeSelector{}
}

func hostPort(u unscheduled) *insight.Finding {
	f := &insight.Finding{What: "the host port that the pod wants is taken on every node that would do", Why: "Two pods with the same hostPort cannot be on one node: a Service of type NodePort or LoadBalancer has no such limit.",
		Mend: []insight.Mend{workloadOf(u.s, u.pod).edit("remove hostPort, and use a Service")}}
	for _, mine := range hostPorts(u.pod) {
		for _, other := range insight.All[*corev1.Pod](u.s, "") {
			if other.Spec.NodeName != "" && !ended(other) && slices.Contains(hostPorts(other), mine) {
				f.Evidence = append(f.Evidence, fmt.Sprintf("spec: pod %s/%s has %s on node %s", other.Namespace, other.Name, mine, other.Spec.NodeName))
			}
		}
	}
	return f
}

func hostPorts(p *corev1.Pod) []string {
	var out []string
	for _, c := range insight.Containers(&p.Spec) {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				out = append(out, fmt.Sprintf("host port %d/%s", port.HostPort, cmp.Or(port.Protocol, corev1.ProtocolTCP)))
			}
		}
	}
	return out
}

func volumeNode(u unscheduled) *insight.Finding {
	f := &insight.Finding{What: "the pod's volume can only be used on a node that cannot take the pod", Why: "The volume was made before it was known where the pod fits; volumeBindingMode WaitForFirstConsumer avoids that."}
	for _, name := range insight.PodClaims(u.pod) {
		c, ok := insight.Get[*corev1.PersistentVolumeClaim](u.s, u.pod.Namespace, name)
		if !ok {
			continue
		}
		v, ok := insight.Get[*corev1.PersistentVolume](u.s, "", c.Spec.VolumeName)
		if !ok || v.Spec.NodeAffinity == nil || v.Spec.NodeAffinity.Required == nil {
			continue
		}
		for _, t := range v.Spec.NodeAffinity.Required.NodeSelectorTerms {
			for _, e := range t.MatchExpressions {
				f.Evidence = append(f.Evidence, fmt.Sprintf("spec: volume %s of claim %s needs a node with %s in %s", v.Name, name, e.Key, strings.Join(e.Values, ", ")))
			}
		}
	}
	return f
}

func uncordon(n *corev1.Node) insight.Mend {
	return insight.Mend{Command: "peri kubectl uncordon " + n.Name, Note: "lets the node take pods again",
		Change: &insight.Change{Verb: "patch", Version: "v1", Resource: "nodes", Name: n.Name, Patch: "merge", Body: `{"spec":{"unschedulable":null}}`}}
}
