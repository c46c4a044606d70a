package hollow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/base"
)

// Silent is the annotation of a node that gives no signs of life while it is "true",
// as a machine without power: no heartbeats, and nothing happens to its pods.
const Silent = "periplus.io/hollow-silent"

// ErrTaken is returned when a node of a name exists that is not a hollow one.
var ErrTaken = errors.New("a node of this name exists already and is not a hollow one: choose another --name-prefix")

// A node is one Node object and its heartbeats.
type node struct {
	fleet  *Fleet
	index  int
	name   string
	ip     netip.Addr
	pods   netip.Prefix
	client kubernetes.Interface // set by register
	beat   entry

	beating  sync.Mutex // held while a heartbeat is sent; guards what follows
	lease    *coordinationv1.Lease
	renewAt  time.Time
	statusAt time.Time
	pause    time.Duration // after a failure

	// Guarded by the fleet's mu.
	uid       types.UID
	present   bool     // the API has it
	silent    bool     // see Silent
	unready   bool     // the API does not show it Ready
	addresses []uint64 // of pods: a bit for each that is taken
}

func newNode(f *Fleet, index int) *node {
	i := f.cfg.First + index
	return &node{fleet: f, index: i, name: f.cfg.Prefix + "-" + strconv.Itoa(i), ip: f.cfg.nodeAddress(i), pods: f.cfg.podRange(i)}
}

// object is the Node as it is registered.
func (n *node) object() *corev1.Node {
	c := &n.fleet.cfg
	labels := map[string]string{
		corev1.LabelHostname: n.name, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": runtime.GOOS, "beta.kubernetes.io/arch": runtime.GOARCH,
		base.HollowLabel: c.Prefix,
		// Nobody answers at its address.
		corev1.LabelNodeExcludeBalancers: "true",
	}
	if c.Zones > 0 {
		labels[corev1.LabelTopologyZone] = "zone-" + strconv.Itoa(n.index%c.Zones+1)
	}
	maps.Copy(labels, c.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels},
		Spec:       corev1.NodeSpec{PodCIDR: n.pods.String(), PodCIDRs: []string{n.pods.String()}, Taints: c.Taints},
		Status:     n.status(),
	}
}

func (n *node) status() corev1.NodeStatus {
	c := &n.fleet.cfg
	resources := corev1.ResourceList{
		corev1.ResourceCPU: c.CPU.Quantity, corev1.ResourceMemory: c.Memory.Quantity, corev1.ResourceEphemeralStorage: c.Storage.Quantity,
		corev1.ResourcePods: *resource.NewQuantity(int64(c.MaxPods), resource.DecimalSI),
	}
	return corev1.NodeStatus{
		Capacity: resources, Allocatable: resources,
		Conditions: nodeConditions(metav1.Now().Rfc3339Copy()),
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: n.ip.String()}, {Type: corev1.NodeHostName, Address: n.name}},
		NodeInfo: corev1.NodeSystemInfo{
			MachineID: digest(n.name)[:32], SystemUUID: digest(n.name)[:32], BootID: n.fleet.boot,
			KernelVersion: "0.0.0-hollow", OSImage: "hollow", ContainerRuntimeVersion: "hollow://" + c.Version[1:], KubeletVersion: c.Version + "+hollow",
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH,
		},
	}
}

// nodeConditions are those of a kubelet that is well.
func nodeConditions(now metav1.Time) []corev1.NodeCondition {
	all := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
	}
	for i := range all {
		all[i].LastHeartbeatTime, all[i].LastTransitionTime = now, now
	}
	return all
}

// register creates the object, or takes over the one of an earlier life.
func (n *node) register(ctx context.Context) error {
	if n.client == nil {
		n.client = n.fleet.cfg.Client
		if connect := n.fleet.cfg.Connect; connect != nil {
			c, err := connect(n.name)
			if err != nil {
				return err
			}
			n.client = c
		}
	}
	nodes := n.client.CoreV1().Nodes()
	got, err := nodes.Create(ctx, n.object(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		got, err = n.adopt(ctx)
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", n.name, err)
	}
	n.fleet.sawNode(got)
	return nil
}

func (n *node) adopt(ctx context.Context) (*corev1.Node, error) {
	nodes := n.client.CoreV1().Nodes()
	have, err := nodes.Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if _, ours := have.Labels[base.HollowLabel]; !ours {
		return nil, ErrTaken
	}
	fresh := n.object()
	want := have.DeepCopy()
	maps.Copy(want.Labels, fresh.Labels)
	if !maps.Equal(want.Labels, have.Labels) {
		if want, err = nodes.Update(ctx, want, metav1.UpdateOptions{}); err != nil {
			return nil, err
		}
	}
	if want.Annotations[Silent] == "true" {
		return want, nil
	}
	status := fresh.Status
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if j := slices.IndexFunc(want.Status.Conditions, func(o corev1.NodeCondition) bool { return o.Type == c.Type && o.Status == c.Status }); j >= 0 {
			c.LastTransitionTime = want.Status.Conditions[j].LastTransitionTime
		}
	}
	want.Status = status
	return nodes.UpdateStatus(ctx, want, metav1.UpdateOptions{})
}

// heartbeat is a patch that says that the kubelet is well, now; all of it when the
// API shows something else.
func heartbeat(now metav1.Time, all bool) ([]byte, error) {
	type condition map[string]any
	list := make([]condition, 0, 4)
	for _, c := range nodeConditions(now) {
		if all {
			list = append(list, condition{
				"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message, "lastHeartbeatTime": now, "lastTransitionTime": now,
			})
			continue
		}
		list = append(list, condition{"type": c.Type, "lastHeartbeatTime": now})
	}
	return json.Marshal(map[string]any{"status": map[string]any{"conditions": list}})
}

// takeLocked gives an address of the node's range to a pod; the zero address when all
// are taken. The first one is left to a gateway, as usual.
func (n *node) takeLocked() netip.Addr {
	size := 1 << (32 - n.pods.Bits())
	if n.addresses == nil {
		n.addresses = make([]uint64, (size+63)/64)
		n.addresses[0] = 0b11
		n.addresses[len(n.addresses)-1] |= 1 << 63 // broadcast
	}
	for i, word := range n.addresses {
		if free := bits.TrailingZeros64(^word); free < 64 {
			n.addresses[i] |= 1 << free
			return plus(n.pods.Addr(), i*64+free)
		}
	}
	return netip.Addr{}
}

// claimLocked notes that a pod has an address already.
func (n *node) claimLocked(a netip.Addr) {
	if !n.pods.Contains(a) {
		return
	}
	if n.addresses == nil {
		n.addresses = make([]uint64, (1<<(32-n.pods.Bits())+63)/64)
		n.addresses[0] = 0b11
		n.addresses[len(n.addresses)-1] |= 1 << 63
	}
	i := n.offset(a)
	n.addresses[i/64] |= 1 << (i % 64)
}

func (n *node) releaseLocked(a netip.Addr) {
	if n.addresses == nil || !n.pods.Contains(a) {
		return
	}
	i := n.offset(a)
	n.addresses[i/64] &^= 1 << (i % 64)
}

// offset is an address's place in the node's range.
func (n *node) offset(a netip.Addr) int {
	x, y := a.As4(), n.pods.Addr().As4()
	return (int(x[0])<<24 | int(x[1])<<16 | int(x[2])<<8 | int(x[3])) - (int(y[0])<<24 | int(y[1])<<16 | int(y[2])<<8 | int(y[3]))
}
