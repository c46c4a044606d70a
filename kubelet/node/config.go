package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/linux/machine"
)

// Config of a Node.
type Config struct {
	Name   string
	Client kubernetes.Interface
	// Informer holds this node's object, and perhaps others. The caller runs it.
	// Nil: the Node watches its own object.
	Informer cache.SharedIndexInformer
	Runtime  cri.Runtime
	Images   cri.Images
	Events   record.EventRecorder
	Log      *slog.Logger

	Labels      map[string]string // besides kubernetes.io/hostname, os and arch
	Annotations map[string]string
	Taints      []corev1.Taint // set at registration only
	ProviderID  string
	IPs         []net.IP // default: the machine's
	Hostname    string   // default: the node's name
	Version     string   // of the kubelet: v1.37.2+periplus
	Port        int32    // of the kubelet's server, default 10250

	// Capacity replaces what is measured, resource by resource.
	Capacity corev1.ResourceList
	// Reserved is kept for the system and for Kubernetes itself. Withheld says what else
	// of the capacity pods do not get. Together they are at most what there is.
	Reserved corev1.ResourceList
	Withheld func(capacity corev1.ResourceList) corev1.ResourceList
	// Devices are what device plug-ins offer: capacity and what of it is healthy. Nil: none.
	Devices func() (capacity, allocatable corev1.ResourceList)
	// Problems are reasons besides the runtime's why the node is not ready.
	Problems func() []string
	MaxPods  int
	// Dir is on the disk that pods use.
	Dir string

	LeaseDuration time.Duration // default 40 s
	RenewEvery    time.Duration // default 10 s
	StatusEvery   time.Duration // default 5 min: of a status without news
	// VolumesInUse lists the attachable volumes that are or may be mounted here; nil: none.
	VolumesInUse func() []corev1.UniqueVolumeName
	// Tick is called at the times at which the lease is renewed, also while the API is
	// away: for what has to be looked at now and then. Pressure returns the conditions
	// of want that hold. Nil: neither.
	Tick     func(context.Context)
	Pressure func() []corev1.NodeConditionType
	// NetworkReady is told whether pods can get a network.
	NetworkReady func(bool)
}

// MemoryCapacity is the machine's memory in bytes.
func MemoryCapacity() int64 { return machine.Memory() }

func (c *Config) withDefaults() error {
	if c.Name == "" || c.Client == nil || c.Runtime == nil || c.Images == nil {
		return errors.New("node: Name, Client, Runtime and Images are required")
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if len(c.IPs) == 0 {
		c.IPs = machine.Addresses()
	}
	if c.Hostname == "" {
		c.Hostname = c.Name
	}
	if c.Version == "" {
		c.Version = "v1.37.2"
	}
	if c.Port == 0 {
		c.Port = 10250
	}
	if c.MaxPods == 0 {
		c.MaxPods = 110
	}
	if c.Dir == "" {
		c.Dir = "/var/lib"
	}
	if c.LeaseDuration == 0 {
		c.LeaseDuration = 40 * time.Second
	}
	if c.RenewEvery == 0 {
		c.RenewEvery = 10 * time.Second
	}
	if c.StatusEvery == 0 {
		c.StatusEvery = 5 * time.Minute
	}
	if c.Withheld == nil {
		c.Withheld = func(corev1.ResourceList) corev1.ResourceList { return nil }
	}
	if c.Problems == nil {
		c.Problems = func() []string { return nil }
	}
	if c.Tick == nil {
		c.Tick = func(context.Context) {}
	}
	if c.Pressure == nil {
		c.Pressure = func() []corev1.NodeConditionType { return nil }
	}
	if c.NetworkReady == nil {
		c.NetworkReady = func(bool) {}
	}
	return nil
}
