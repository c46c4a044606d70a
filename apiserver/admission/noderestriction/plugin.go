package noderestriction

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

// mirror marks pods that a kubelet made from a file.
const mirror = "kubernetes.io/config.mirror"

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

type plugin struct{ objects registry.Reader }

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "NodeRestriction" }

// nodeOf returns the node that sends a request, if it is one.
func nodeOf(u user.Info) (string, bool) {
	if u == nil || !slices.Contains(u.GetGroups(), user.NodesGroup) {
		return "", false
	}
	name, ok := strings.CutPrefix(u.GetName(), "system:node:")
	return name, ok && name != ""
}

// Validate implements admission.Validator.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	node, ok := nodeOf(a.User)
	if !ok {
		return nil
	}
	var err error
	switch a.Resource.GroupResource() {
	case schema.GroupResource{Resource: "pods"}:
		err = p.pod(node, a)
	case schema.GroupResource{Resource: "nodes"}:
		err = ownNode(node, a)
	case schema.GroupResource{Group: coordinationv1.GroupName, Resource: "leases"}:
		err = lease(node, a)
	case schema.GroupResource{Group: storagev1.GroupName, Resource: "csinodes"}:
		if nameOf(a) != node {
			err = fmt.Errorf("can only access CSINode with the same name as the requesting node")
		}
	}
	if err != nil {
		return apierrors.NewForbidden(a.Resource.GroupResource(), nameOf(a), err)
	}
	return nil
}

// nameOf is the name of the object; on creation it may only be inside of it.
func nameOf(a *admission.Attributes) string {
	if a.Name != "" {
		return a.Name
	}
	if m, ok := a.Object.(interface{ GetName() string }); ok {
		return m.GetName()
	}
	return ""
}

func lease(node string, a *admission.Attributes) error {
	if a.Namespace != corev1.NamespaceNodeLease {
		return fmt.Errorf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
	}
	if nameOf(a) != node {
		return fmt.Errorf("can only access node lease with the same name as the requesting node")
	}
	return nil
}

func (p plugin) pod(node string, a *admission.Attributes) error {
	switch a.Subresource {
	case "":
		switch a.Operation {
		case admission.Create:
			return mirrorPod(node, a)
		case admission.Delete:
			if old := p.known(a); old == nil || old.Spec.NodeName != node {
				return fmt.Errorf("node %q can only delete pods with spec.nodeName set to itself", node)
			}
			return nil
		}
		return fmt.Errorf("unexpected operation %q, node %q can only create and delete mirror pods", a.Operation, node)
	case "status":
		old, ok := a.Old.(*corev1.Pod)
		if !ok || old.Spec.NodeName != node {
			return fmt.Errorf("node %q can only update pod status for pods with spec.nodeName set to itself", node)
		}
		if now, ok := a.Object.(*corev1.Pod); ok && !maps.Equal(old.Labels, now.Labels) {
			return fmt.Errorf("node %q cannot update labels through pod status", node)
		}
	case "eviction":
		if _, ok := a.Object.(*policyv1.Eviction); !ok && a.Object != nil {
			return fmt.Errorf("unexpected type %T", a.Object)
		}
		if old := p.known(a); old == nil || old.Spec.NodeName != node {
			return fmt.Errorf("node %s can only evict pods with spec.nodeName set to itself", node)
		}
	}
	return nil
}

// known is the pod that the request is about.
func (p plugin) known(a *admission.Attributes) *corev1.Pod {
	if pod, ok := a.Old.(*corev1.Pod); ok {
		return pod
	}
	obj, err := p.objects.Get(pods, a.Namespace, nameOf(a))
	if err != nil {
		return nil
	}
	pod, _ := obj.(*corev1.Pod)
	return pod
}

// mirrorPod checks a pod that stands for one from a file: it must not give its
// node access to anything.
func mirrorPod(node string, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.Object)
	}
	if _, is := pod.Annotations[mirror]; !is {
		return fmt.Errorf("pod does not have %q annotation, node %q can only create mirror pods", mirror, node)
	}
	if pod.Spec.NodeName != node {
		return fmt.Errorf("node %q can only create pods with spec.nodeName set to itself", node)
	}
	if len(pod.OwnerReferences) > 1 {
		return fmt.Errorf("node %q can only create pods with a single owner reference set to itself", node)
	}
	for _, ref := range pod.OwnerReferences {
		if ref.APIVersion != "v1" || ref.Kind != "Node" || ref.Name != node {
			return fmt.Errorf("node %q can only create pods with an owner reference set to itself", node)
		}
	}
	if pod.Spec.ServiceAccountName != "" {
		return fmt.Errorf("node %q can not create pods that reference a service account", node)
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil:
			return fmt.Errorf("node %q can not create pods that reference secrets", node)
		case v.ConfigMap != nil:
			return fmt.Errorf("node %q can not create pods that reference configmaps", node)
		case v.PersistentVolumeClaim != nil || v.Ephemeral != nil:
			return fmt.Errorf("node %q can not create pods that reference persistentvolumeclaims", node)
		}
	}
	return nil
}

func ownNode(node string, a *admission.Attributes) error {
	if a.Operation == admission.Delete || nameOf(a) != node {
		return fmt.Errorf("node %q is not allowed to modify node %q", node, nameOf(a))
	}
	now, ok := a.Object.(*corev1.Node)
	if !ok {
		return nil
	}
	if a.Operation == admission.Create {
		if forbidden := forbiddenLabels(nil, now.Labels); len(forbidden) > 0 {
			return fmt.Errorf("node %q is not allowed to set the following labels: %s", node, strings.Join(forbidden, ", "))
		}
		return nil
	}
	old, ok := a.Old.(*corev1.Node)
	if !ok {
		return nil
	}
	if !equality.Semantic.DeepEqual(old.Spec.Taints, now.Spec.Taints) {
		return fmt.Errorf("node %q is not allowed to modify taints", node)
	}
	if forbidden := forbiddenLabels(old.Labels, now.Labels); len(forbidden) > 0 {
		return fmt.Errorf("is not allowed to modify labels: %s", strings.Join(forbidden, ", "))
	}
	if !equality.Semantic.DeepEqual(old.OwnerReferences, now.OwnerReferences) {
		return fmt.Errorf("node %q is not allowed to modify ownerReferences", node)
	}
	return nil
}

// kubeletLabels are those of Kubernetes' own that a kubelet may set.
var kubeletLabels = sets.New(
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable,
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch",
)

// forbiddenLabels lists what was changed and may not be (KEP-279), sorted.
func forbiddenLabels(old, now map[string]string) []string {
	var out []string
	check := func(label string) {
		before, had := old[label]
		after, has := now[label]
		if had == has && before == after {
			return
		}
		namespace, _, qualified := strings.Cut(label, "/")
		if !qualified || kubeletLabels.Has(label) {
			return
		}
		within := func(domain string) bool { return namespace == domain || strings.HasSuffix(namespace, "."+domain) }
		switch {
		case within("node-restriction.kubernetes.io"):
		case within("kubelet.kubernetes.io"), within("node.kubernetes.io"):
			return
		case !within("kubernetes.io") && !within("k8s.io"):
			return
		}
		out = append(out, label)
	}
	for label := range old {
		check(label)
	}
	for label := range now {
		if _, had := old[label]; !had {
			check(label)
		}
	}
	slices.Sort(out)
	return out
}
