package cni

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// ErrNotReady is returned by Status and Add while the node has no pod range yet.
var ErrNotReady = errors.New("network is not ready: the node has no pod range yet")

// A Network attaches pods' network namespaces. Its methods may be called
// concurrently for different sandboxes. Allocated addresses survive a restart of
// the process.
type Network interface {
	// Name is the name of the network, as in a CNI configuration list.
	Name() string
	// Configure sets the node's pod ranges (at most one a family). Calling it
	// again with the same ranges changes nothing.
	Configure(ctx context.Context, podCIDRs []netip.Prefix) error
	// Status returns nil when pods can be attached (CNI STATUS), else the reason.
	Status(ctx context.Context) error
	// Add attaches a sandbox (CNI ADD). On error nothing is left behind.
	Add(ctx context.Context, a Attachment) (Result, error)
	// Check verifies an earlier Add (CNI CHECK).
	Check(ctx context.Context, a Attachment) error
	// Del detaches it (CNI DEL). It succeeds when the namespace or the attachment
	// is already gone.
	Del(ctx context.Context, a Attachment) error
	// Collect frees what belongs to no sandbox in keep (CNI GC); keys are sandbox IDs.
	Collect(ctx context.Context, keep map[string]bool) error
}

// An Attachment is one sandbox in one network.
type Attachment struct {
	SandboxID    string // container ID in CNI terms
	NetNS        string // path of the pinned network namespace
	IfName       string // name of the interface inside, "eth0"
	PodNamespace string
	PodName      string
	PodUID       string
	PortMappings []PortMapping
	// Wanted are addresses that the pod had before and gets again if they are free.
	Wanted []netip.Addr
}

// AnnotationWanted is what a sandbox's annotations say Wanted with: addresses, separated
// by commas. A pod that is started again keeps its address, so that Services find it while
// nobody can tell them of another one.
const AnnotationWanted = "periplus.io/wanted-addresses"

// A PortMapping is a hostPort of a pod: host address and port to container port.
type PortMapping struct {
	Protocol      string // "tcp", "udp" or "sctp"
	HostIP        netip.Addr
	HostPort      uint16
	ContainerPort uint16
}

// A Result is what an attachment got: at most one address a family, each with
// the length of the node's pod range.
type Result struct {
	Addresses []netip.Prefix
	Gateways  []netip.Addr
	MAC       net.HardwareAddr
	HostIf    string // name of the host's end of the pair
}
