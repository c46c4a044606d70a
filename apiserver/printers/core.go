package printers

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func coreTables() tables {
	return tables{
		"namespaces": table(columns{name(), text("Status", "The status of the namespace"), age()},
			func(n *corev1.Namespace) []any { return []any{n.Name, string(n.Status.Phase), old(n)} }),
		"configmaps": table(columns{name(), text("Data", doc(corev1.ConfigMap{}, "data")), age()},
			func(m *corev1.ConfigMap) []any { return []any{m.Name, int64(len(m.Data) + len(m.BinaryData)), old(m)} }),
		"secrets": table(columns{name(), text("Type", doc(corev1.Secret{}, "type")), text("Data", doc(corev1.Secret{}, "data")), age()},
			func(s *corev1.Secret) []any { return []any{s.Name, string(s.Type), int64(len(s.Data)), old(s)} }),
		"componentstatuses": table(columns{
			name(), text("Status", "Status of the component conditions"), text("Message", "Message of the component conditions"),
			text("Error", "Error of the component conditions"),
		}, componentStatus),
		"serviceaccounts": table(columns{name(), age()},
			func(a *corev1.ServiceAccount) []any { return []any{a.Name, old(a)} }),
		"replicationcontrollers": table(slices.Concat(columns{
			name(),
			number("Desired", doc(corev1.ReplicationControllerSpec{}, "replicas")),
			number("Current", doc(corev1.ReplicationControllerStatus{}, "replicas")),
			number("Ready", doc(corev1.ReplicationControllerStatus{}, "readyReplicas")),
			age(),
		}, containerColumns(), columns{wide(text("Selector", doc(corev1.ReplicationControllerSpec{}, "selector")))}),
			func(c *corev1.ReplicationController) []any {
				cells := []any{c.Name, int64(deref(c.Spec.Replicas, 0)), int64(c.Status.Replicas), int64(c.Status.ReadyReplicas), old(c)}
				var spec *corev1.PodSpec
				if c.Spec.Template != nil {
					spec = &c.Spec.Template.Spec
				}
				return append(withContainers(cells, spec), labels.FormatLabels(c.Spec.Selector))
			}),
		"resourcequotas": table(columns{
			name(),
			text("Request", "Used and hard amounts of everything but limits."),
			text("Limit", "Used and hard amounts of limits."),
			age(),
		}, resourceQuota),
		"events": table(columns{
			text("Last Seen", doc(corev1.Event{}, "lastTimestamp")),
			text("Type", doc(corev1.Event{}, "type")),
			text("Reason", doc(corev1.Event{}, "reason")),
			text("Object", doc(corev1.Event{}, "involvedObject")),
			wide(text("Subobject", doc(corev1.ObjectReference{}, "fieldPath"))),
			wide(text("Source", doc(corev1.Event{}, "source"))),
			text("Message", doc(corev1.Event{}, "message")),
			wide(text("First Seen", doc(corev1.Event{}, "firstTimestamp"))),
			wide(text("Count", doc(corev1.Event{}, "count"))),
			wide(name()),
		}, event),
	}
}

func resourceQuota(q *corev1.ResourceQuota) []any {
	var requests, limits []string
	for _, r := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		used, hard := q.Status.Used[r], q.Status.Hard[r]
		cell := fmt.Sprintf("%s: %s/%s", r, used.String(), hard.String())
		if strings.HasPrefix(string(r), "limits.") {
			limits = append(limits, cell)
		} else {
			requests = append(requests, cell)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), old(q)}
}

// event understands both ways of counting: count with first and last timestamp,
// and event time with a series.
func event(e *corev1.Event) []any {
	first := since(e.FirstTimestamp)
	if e.FirstTimestamp.IsZero() {
		first = ago(e.EventTime.Time)
	}
	last := since(e.LastTimestamp)
	if e.LastTimestamp.IsZero() {
		last = first
	}
	count := max(e.Count, 1)
	if e.Series != nil {
		last, count = ago(e.Series.LastObservedTime.Time), e.Series.Count
	}
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	source := or(e.Source.Component, e.ReportingController)
	if host := or(e.Source.Host, e.ReportingInstance); host != "" {
		source += ", " + host
	}
	return []any{last, e.Type, e.Reason, object, e.InvolvedObject.FieldPath, source, strings.TrimSpace(e.Message), first, int64(count), e.Name}
}

func nodeTables() tables {
	return tables{
		"nodes": table(columns{
			name(),
			text("Status", "The status of the node"),
			text("Roles", "The roles of the node"),
			age(),
			text("Version", doc(corev1.NodeSystemInfo{}, "kubeletVersion")),
			wide(text("Internal-IP", doc(corev1.NodeStatus{}, "addresses"))),
			wide(text("External-IP", doc(corev1.NodeStatus{}, "addresses"))),
			wide(text("OS-Image", doc(corev1.NodeSystemInfo{}, "osImage"))),
			wide(text("Kernel-Version", doc(corev1.NodeSystemInfo{}, "kernelVersion"))),
			wide(text("Container-Runtime", doc(corev1.NodeSystemInfo{}, "containerRuntimeVersion"))),
		}, node),
	}
}

func node(n *corev1.Node) []any {
	status := "Unknown"
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			status = "NotReady"
			if c.Status == corev1.ConditionTrue {
				status = "Ready"
			}
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	info := &n.Status.NodeInfo
	kernel := or(info.KernelVersion, unknown)
	if info.Architecture != "" {
		kernel += " (" + info.Architecture + ")"
	}
	return []any{
		n.Name, status, or(strings.Join(nodeRoles(n), ","), none), old(n), info.KubeletVersion,
		address(n, corev1.NodeInternalIP), address(n, corev1.NodeExternalIP),
		or(info.OSImage, unknown), kernel, or(info.ContainerRuntimeVersion, unknown),
	}
}

// nodeRoles reads the labels node-role.kubernetes.io/ROLE and kubernetes.io/role=ROLE.
func nodeRoles(n *corev1.Node) []string {
	var roles []string
	for k, v := range n.Labels {
		if role, ok := strings.CutPrefix(k, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if k == "kubernetes.io/role" && v != "" {
			roles = append(roles, v)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

func address(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return none
}
