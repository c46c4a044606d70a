package node

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/linux/machine"
	"github.com/periplus/periplus/linux/pressure"
)

// Limits of status.images.
const (
	maxImages     = 50
	maxImageNames = 5
)

// initial is the object as registered, without status.
func (n *Node) initial() *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:      n.cfg.Hostname,
		corev1.LabelOSStable:      runtime.GOOS,
		corev1.LabelArchStable:    runtime.GOARCH,
		"beta.kubernetes.io/os":   runtime.GOOS,
		"beta.kubernetes.io/arch": runtime.GOARCH,
	}
	maps.Copy(labels, n.cfg.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.cfg.Name, Labels: labels, Annotations: n.cfg.Annotations},
		Spec:       corev1.NodeSpec{ProviderID: n.cfg.ProviderID, Taints: n.cfg.Taints},
	}
}

// status is the node's status now. Conditions of others and what the attach
// controller keeps there stay.
func (n *Node) status(ctx context.Context, node *corev1.Node) *corev1.NodeStatus {
	st := node.Status.DeepCopy()
	st.Addresses = n.addresses()
	st.Capacity, st.Allocatable = n.resources()
	st.DaemonEndpoints.KubeletEndpoint.Port = n.cfg.Port
	st.NodeInfo = n.info(ctx)
	st.Images = n.images(ctx)
	if n.cfg.VolumesInUse != nil {
		st.VolumesInUse = n.cfg.VolumesInUse()
	}

	resp, err := n.cfg.Runtime.Status(ctx, &runtimeapi.StatusRequest{})
	if err == nil {
		st.RuntimeHandlers = handlers(resp.RuntimeHandlers)
		if f := resp.Features; f != nil {
			policy := f.SupplementalGroupsPolicy
			st.Features = &corev1.NodeFeatures{SupplementalGroupsPolicy: &policy}
		}
	}
	problems, networkReady := runtimeProblems(resp, err)
	problems = append(problems, n.cfg.Problems()...)
	n.cfg.NetworkReady(networkReady)

	set := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
		setCondition(st, corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
	under := n.cfg.Pressure()
	for _, p := range pressureTexts {
		if slices.Contains(under, p.kind) {
			set(p.kind, corev1.ConditionTrue, p.reason, p.message)
		} else {
			set(p.kind, corev1.ConditionFalse, p.noReason, p.noMessage)
		}
	}
	if len(problems) == 0 {
		set(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	} else {
		set(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", strings.Join(problems, ", "))
	}
	return st
}

// pressureTexts are the conditions of want, as they hold and as they do not.
var pressureTexts = []struct {
	kind                                 corev1.NodeConditionType
	reason, message, noReason, noMessage string
}{
	{corev1.NodeMemoryPressure, "KubeletHasInsufficientMemory", "kubelet has insufficient memory available", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"},
	{corev1.NodeDiskPressure, "KubeletHasDiskPressure", "kubelet has disk pressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
	{corev1.NodePIDPressure, "KubeletHasInsufficientPID", "kubelet has insufficient PID available", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
}

func runtimeProblems(resp *runtimeapi.StatusResponse, err error) (problems []string, networkReady bool) {
	if err != nil {
		return []string{"container runtime is down"}, false
	}
	conditions := map[string]*runtimeapi.RuntimeCondition{}
	for _, c := range resp.GetStatus().GetConditions() {
		conditions[c.Type] = c
	}
	if c := conditions[runtimeapi.RuntimeReady]; !c.GetStatus() {
		problems = append(problems, "container runtime not ready: "+describe(runtimeapi.RuntimeReady, c))
	}
	c := conditions[runtimeapi.NetworkReady]
	if networkReady = c.GetStatus(); !networkReady {
		problems = append(problems, "container runtime network not ready: "+describe(runtimeapi.NetworkReady, c))
	}
	return problems, networkReady
}

func describe(kind string, c *runtimeapi.RuntimeCondition) string {
	return fmt.Sprintf("%s=%v reason:%s message:%s", kind, c.GetStatus(), c.GetReason(), c.GetMessage())
}

func (n *Node) addresses() []corev1.NodeAddress {
	var out []corev1.NodeAddress
	for _, ip := range n.cfg.IPs {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.String()})
	}
	return append(out, corev1.NodeAddress{Type: corev1.NodeHostName, Address: n.cfg.Hostname})
}

func (n *Node) resources() (capacity, allocatable corev1.ResourceList) {
	disk, _ := machine.Disk(n.cfg.Dir)
	memory := machine.Memory()
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(int64(n.cfg.MaxPods), resource.DecimalSI),
	}
	pages := pressure.HugePages()
	for size, total := range pages {
		capacity[corev1.ResourceName(corev1.ResourceHugePagesPrefix+size)] = *resource.NewQuantity(total, resource.BinarySI)
	}
	maps.Copy(capacity, n.cfg.Capacity)
	withheld := n.cfg.Withheld(capacity)
	allocatable = corev1.ResourceList{}
	for name, q := range capacity {
		v := q.DeepCopy()
		for _, less := range []corev1.ResourceList{n.cfg.Reserved, withheld} {
			if r, ok := less[name]; ok {
				v.Sub(r)
			}
		}
		if name == corev1.ResourceMemory {
			for _, total := range pages { // nobody else's
				v.Sub(*resource.NewQuantity(total, resource.BinarySI))
			}
		}
		if v.Sign() < 0 {
			v.Set(0)
		}
		allocatable[name] = v
	}
	if n.cfg.Devices != nil {
		have, healthy := n.cfg.Devices()
		maps.Copy(capacity, have)
		maps.Copy(allocatable, healthy)
	}
	return capacity, allocatable
}

func (n *Node) info(ctx context.Context) corev1.NodeSystemInfo {
	if n.version == nil {
		if v, err := n.cfg.Runtime.Version(ctx, &runtimeapi.VersionRequest{}); err == nil {
			n.version = v
		}
	}
	return corev1.NodeSystemInfo{
		MachineID: n.identity.MachineID, SystemUUID: n.identity.SystemUUID, BootID: n.identity.BootID,
		KernelVersion: n.identity.Kernel, OSImage: n.identity.OSImage,
		ContainerRuntimeVersion: n.version.GetRuntimeName() + "://" + n.version.GetRuntimeVersion(),
		KubeletVersion:          n.cfg.Version,
		OperatingSystem:         runtime.GOOS, Architecture: runtime.GOARCH,
	}
}

// images lists the biggest images.
func (n *Node) images(ctx context.Context) []corev1.ContainerImage {
	resp, err := n.cfg.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil
	}
	list := slices.Clone(resp.Images)
	slices.SortFunc(list, func(a, b *runtimeapi.Image) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Id, b.Id))
	})
	out := make([]corev1.ContainerImage, 0, min(len(list), maxImages))
	for _, i := range list[:min(len(list), maxImages)] {
		names := slices.Concat(i.RepoDigests, i.RepoTags)
		if len(names) == 0 {
			continue
		}
		out = append(out, corev1.ContainerImage{Names: names[:min(len(names), maxImageNames)], SizeBytes: int64(i.Size)}) //nolint:gosec // images are smaller than 2^63
	}
	return out
}

func handlers(list []*runtimeapi.RuntimeHandler) []corev1.NodeRuntimeHandler {
	var out []corev1.NodeRuntimeHandler
	for _, h := range list {
		v := corev1.NodeRuntimeHandler{Name: h.Name}
		if f := h.Features; f != nil {
			ro, ns := f.RecursiveReadOnlyMounts, false // the kubelet gives no ranges of users out
			v.Features = &corev1.NodeRuntimeHandlerFeatures{RecursiveReadOnlyMounts: &ro, UserNamespaces: &ns}
		}
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b corev1.NodeRuntimeHandler) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func setCondition(st *corev1.NodeStatus, c corev1.NodeCondition) {
	now := metav1.Now().Rfc3339Copy()
	c.LastHeartbeatTime, c.LastTransitionTime = now, now
	for i := range st.Conditions {
		if old := &st.Conditions[i]; old.Type == c.Type {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			*old = c
			return
		}
	}
	st.Conditions = append(st.Conditions, c)
}

func conditionOf(st *corev1.NodeStatus, kind corev1.NodeConditionType) corev1.ConditionStatus {
	for i := range st.Conditions {
		if st.Conditions[i].Type == kind {
			return st.Conditions[i].Status
		}
	}
	return corev1.ConditionUnknown
}

// differs compares two statuses but for the heartbeat times.
func differs(a, b *corev1.NodeStatus) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, s := range []*corev1.NodeStatus{a, b} {
		for i := range s.Conditions {
			s.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
	}
	return !apiequality.Semantic.DeepEqual(a, b)
}
