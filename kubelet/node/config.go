package node

import (
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
	// Reserved is withheld from pods. Default: 100Mi of memory and a tenth of the disk.
	Reserved corev1.ResourceList
	MaxPods  int
	// Dir is on the disk that pods use.
	Dir string

	LeaseDuration time.Duration // default 40 s
	RenewEvery    time.Duration // default 10 s
	StatusEvery   time.Duration // default 5 min: of a status without news
	// VolumesInUse lists the attachable volumes that are or may be mounted here; nil: none.
	VolumesInUse func() []corev1.UniqueVolumeName
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
	if c.NetworkReady == nil {
		c.NetworkReady = func(bool) {}
	}
	return nil
}
