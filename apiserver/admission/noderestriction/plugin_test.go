package noderestriction_test

import (
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/noderestriction"
)

func TestNodeRestriction(t *testing.T) {
	t.Parallel()
	self := &user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.NodesGroup}}
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}
	node := func(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}
	}
	pod := func(on string, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: annotations}, Spec: corev1.PodSpec{NodeName: on}}
	}
	resource := func(group, name string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}
	}
	nodes, pods, leases := resource("", "nodes"), resource("", "pods"), resource("coordination.k8s.io", "leases")
	mirror := map[string]string{"kubernetes.io/config.mirror": "x"}
	plugin := noderestriction.New(nil).(admission.Validator)
	for name, c := range map[string]struct {
		a    admission.Attributes
		want string // in the refusal; "" for none
	}{
		"own node":            {admission.Attributes{User: self, Operation: admission.Create, Resource: nodes, Object: node("n1", map[string]string{"kubernetes.io/os": "linux", "mine": "x"})}, ""},
		"another node":        {admission.Attributes{User: self, Operation: admission.Create, Resource: nodes, Object: node("n2", nil)}, `node "n1" is not allowed to modify node "n2"`},
		"another by admin":    {admission.Attributes{User: admin, Operation: admission.Create, Resource: nodes, Object: node("n2", nil)}, ""},
		"role label":          {admission.Attributes{User: self, Operation: admission.Create, Resource: nodes, Object: node("n1", map[string]string{"node-role.kubernetes.io/control-plane": ""})}, "is not allowed to set the following labels: node-role.kubernetes.io/control-plane"},
		"restricted label":    {admission.Attributes{User: self, Operation: admission.Update, Resource: nodes, Name: "n1", Old: node("n1", nil), Object: node("n1", map[string]string{"x.node-restriction.kubernetes.io/a": ""})}, "is not allowed to modify labels: x.node-restriction"},
		"taint":               {admission.Attributes{User: self, Operation: admission.Update, Resource: nodes, Name: "n1", Old: node("n1", nil, corev1.Taint{Key: "a"}), Object: node("n1", nil)}, "not allowed to modify taints"},
		"delete itself":       {admission.Attributes{User: self, Operation: admission.Delete, Resource: nodes, Name: "n1", Old: node("n1", nil)}, "not allowed to modify"},
		"own pod's status":    {admission.Attributes{User: self, Operation: admission.Update, Resource: pods, Subresource: "status", Name: "p", Old: pod("n1", nil), Object: pod("n1", nil)}, ""},
		"others' pod status":  {admission.Attributes{User: self, Operation: admission.Update, Resource: pods, Subresource: "status", Name: "p", Old: pod("n2", nil), Object: pod("n2", nil)}, "can only update pod status for pods with spec.nodeName set to itself"},
		"mirror pod":          {admission.Attributes{User: self, Operation: admission.Create, Resource: pods, Object: pod("n1", mirror)}, ""},
		"mirror pod of other": {admission.Attributes{User: self, Operation: admission.Create, Resource: pods, Object: pod("n2", mirror)}, "can only create pods with spec.nodeName set to itself"},
		"pod":                 {admission.Attributes{User: self, Operation: admission.Create, Resource: pods, Object: pod("n1", nil)}, "can only create mirror pods"},
		"delete others' pod":  {admission.Attributes{User: self, Operation: admission.Delete, Resource: pods, Name: "p", Old: pod("n2", nil)}, "can only delete pods"},
		"own lease":           {admission.Attributes{User: self, Operation: admission.Update, Resource: leases, Namespace: "kube-node-lease", Name: "n1", Object: &coordinationv1.Lease{}}, ""},
		"others' lease":       {admission.Attributes{User: self, Operation: admission.Update, Resource: leases, Namespace: "kube-node-lease", Name: "n2", Object: &coordinationv1.Lease{}}, "same name as the requesting node"},
		"leader lease":        {admission.Attributes{User: self, Operation: admission.Update, Resource: leases, Namespace: "kube-system", Name: "n1", Object: &coordinationv1.Lease{}}, `in the "kube-node-lease" system namespace`},
	} {
		err := plugin.Validate(t.Context(), &c.a)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
