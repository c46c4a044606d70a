package core

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/apiserver/registry"
)

// A Service claims each of its cluster IPs by an IPAddress object of that name
// (KEP-1880), and each of its node ports by a record. Both are written with the Service
// in one transaction:
//
//	choose from the pools ── Service, IPAddresses, records of ports ── stored
//	        ▲                                │ one exists, and not void
//	        └───────── mark as taken ────────┘
const (
	allocatorName = "ipallocator.k8s.io"
	portRecords   = "/registry/ranges/nodeports/"
	// orphanAfter is when an IPAddress of a Service that does not have it is void: others
	// than us (upstream, a release before) make it before the Service.
	orphanAfter = time.Minute
	// manyPorts is how many node ports may not fit into one transaction: their records
	// are void only once the write is surely over.
	manyPorts = 60
	surely    = 2 * time.Minute
)

var (
	ipAddresses = networkingv1.SchemeGroupVersion.WithResource("ipaddresses")
	serviceKind = version.WithResource("services")
)

var _ registry.Claimant = (*serviceAllocator)(nil)

// ipAddress is the object by which a Service owns an address.
func ipAddress(ip netip.Addr, svc *corev1.Service) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: string(family(ip)), networkingv1.LabelManagedBy: allocatorName,
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: svc.Namespace, Name: svc.Name}},
	}
}

// portRecord says whose a node port is.
type portRecord struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	UID       types.UID    `json:"uid"`
	Since     *metav1.Time `json:"since,omitempty"` // when it may have been written alone
}

// Claims implements registry.Claimant.
func (a *serviceAllocator) Claims(obj runtime.Object) []registry.Claim {
	svc := obj.(*corev1.Service)
	var out []registry.Claim
	for _, ip := range clusterIPsOf(svc) {
		out = append(out, registry.Claim{GVR: ipAddresses, Object: ipAddress(ip, svc)})
	}
	ports := allNodePorts(svc)
	if len(ports) == 0 {
		return out
	}
	record := portRecord{Namespace: svc.Namespace, Name: svc.Name, UID: svc.UID}
	if len(ports) > manyPorts {
		now := metav1.Now()
		record.Since = &now
	}
	value, _ := json.Marshal(record) // a struct of strings always can be
	for _, port := range ports {
		out = append(out, registry.Claim{Key: portRecords + strconv.Itoa(int(port)), Value: value})
	}
	return out
}

// Records implements registry.Claimant.
func (*serviceAllocator) Records() string { return portRecords }

// Parse implements registry.Claimant.
func (*serviceAllocator) Parse(key string) registry.Claim { return registry.Claim{Key: key} }

// Mine implements registry.Claimant.
func (*serviceAllocator) Mine(c registry.Claim, record runtime.Object) bool {
	mine, there := serviceOf(c.Object), serviceOf(record)
	return mine != nil && there != nil && *mine == *there
}

// serviceOf returns the Service to which an IPAddress belongs, nil if it is none's.
func serviceOf(obj runtime.Object) *types.NamespacedName {
	ip, ok := obj.(*networkingv1.IPAddress)
	if !ok || ip.Spec.ParentRef == nil || ip.Spec.ParentRef.Group != "" || ip.Spec.ParentRef.Resource != "services" {
		return nil
	}
	return &types.NamespacedName{Namespace: ip.Spec.ParentRef.Namespace, Name: ip.Spec.ParentRef.Name}
}

// portOf returns the node port that a record's key is of, 0 if of none.
func portOf(key string) int32 {
	n, err := strconv.ParseInt(strings.TrimPrefix(key, portRecords), 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// Void implements registry.Claimant.
func (a *serviceAllocator) Void(_ context.Context, record registry.Record, c registry.Claim) bool {
	if record.Object != nil {
		return a.orphan(record.Object)
	}
	var owner, wanted portRecord
	if err := json.Unmarshal(record.Value, &owner); err != nil {
		return true // it says nothing
	}
	if json.Unmarshal(c.Value, &wanted) == nil && owner.UID == wanted.UID {
		return true // of this write, when it was tried before
	}
	if owner.Since != nil && time.Since(owner.Since.Time) < surely {
		return false
	}
	svc := a.service(owner.Namespace, owner.Name)
	return svc == nil || !slices.Contains(allNodePorts(svc), portOf(c.Key))
}

// service returns a Service from the cache, nil if there is none.
func (a *serviceAllocator) service(namespace, name string) *corev1.Service {
	if a.env.Objects == nil {
		return nil
	}
	obj, err := a.env.Objects.Get(serviceKind, namespace, name)
	if err != nil {
		return nil
	}
	return obj.(*corev1.Service)
}

// orphan reports whether an IPAddress was made by an allocator, long ago, for a Service
// that does not have it.
func (a *serviceAllocator) orphan(obj runtime.Object) bool {
	owner := serviceOf(obj)
	address := obj.(*networkingv1.IPAddress)
	if owner == nil || address.Labels[networkingv1.LabelManagedBy] != allocatorName || time.Since(address.CreationTimestamp.Time) < orphanAfter {
		return false
	}
	svc := a.service(owner.Namespace, owner.Name)
	ip, ok := parseAddr(address.Name)
	return svc == nil || !ok || !slices.Contains(clusterIPsOf(svc), ip)
}

// Taken implements registry.Claimant.
func (a *serviceAllocator) Taken(c registry.Claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if address, ok := c.Object.(*networkingv1.IPAddress); ok {
		if ip, ok := parseAddr(address.Name); ok {
			a.markLocked(ip)
		}
		return
	}
	_ = a.ports.take(portOf(c.Key))
}
