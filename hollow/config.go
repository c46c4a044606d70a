package hollow

import (
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
)

// maxNodes is more than anybody has.
const maxNodes = 100_000

// Config of a Fleet. Defaults gives one to begin with.
type Config struct {
	// Client reads, and writes where Connect is nil.
	Client kubernetes.Interface
	// Connect returns the client with which a node writes what a kubelet writes;
	// nil: Client. It is called once a node.
	Connect func(node string) (kubernetes.Interface, error)

	// Nodes is how many there are: Prefix-First, Prefix-(First+1), …
	Nodes  int
	First  int
	Prefix string

	// CPU, Memory, Storage and MaxPods are what each node has.
	CPU, Memory, Storage resource.QuantityValue
	MaxPods              int
	Labels               map[string]string
	Taints               Taints
	// Zones is over how many zones the nodes are spread (zone-1, zone-2, …); 0: none.
	Zones int

	// NodeCIDR is where the nodes' addresses come from, PodCIDR the pods'. Nobody
	// answers there.
	NodeCIDR, PodCIDR netip.Prefix

	// Start is how long a pod takes from its binding until it is Ready, Stop how long
	// it goes on when it is deleted (at most its grace period), JobTime how long the
	// pods of Jobs run.
	Start, Stop, JobTime Delay

	// Keep leaves the nodes in the API at the end.
	Keep bool

	RenewEvery  time.Duration // of leases, which last four times as long
	StatusEvery time.Duration // of a node's status without news
	// Writers is how many writes for pods are on their way at a time.
	Writers int

	// Version of the kubelet that nodes report.
	Version string
	Log     *slog.Logger
}

// Defaults are the values of fields that nobody set.
func Defaults() Config {
	return Config{
		Nodes: 10, Prefix: "hollow", CPU: quantity("32"), Memory: quantity("256Gi"), Storage: quantity("1Ti"), MaxPods: 110,
		// Ranges that RFC 2544 and RFC 6598 set aside.
		NodeCIDR: netip.MustParsePrefix("198.18.0.0/15"), PodCIDR: netip.MustParsePrefix("100.64.0.0/10"),
		Start: Between(100*time.Millisecond, 500*time.Millisecond), Stop: Fixed(50 * time.Millisecond), JobTime: Fixed(time.Second),
		RenewEvery: 10 * time.Second, StatusEvery: 5 * time.Minute, Writers: 32, Version: "v1.37.2",
	}
}

func quantity(s string) resource.QuantityValue {
	return resource.QuantityValue{Quantity: resource.MustParse(s)}
}

// Validate names every field with a value that is not allowed.
func (c *Config) Validate() error {
	var errs []error
	bad := func(field string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("%s: %v is not allowed: must be %s", field, value, allowed))
	}
	if c.Nodes < 1 || c.Nodes > maxNodes {
		bad("nodes", c.Nodes, fmt.Sprintf("between 1 and %d", maxNodes))
	}
	if c.First < 0 || c.First > maxNodes {
		bad("first", c.First, fmt.Sprintf("between 0 and %d", maxNodes))
	}
	if msgs := validation.IsDNS1123Label(c.Prefix); len(msgs) > 0 || len(c.Prefix) > 50 {
		bad("name-prefix", fmt.Sprintf("%q", c.Prefix), "at most 50 lower case letters, digits and '-', as node names begin with")
	}
	for name, q := range map[string]resource.QuantityValue{"cpu": c.CPU, "memory": c.Memory, "storage": c.Storage} {
		if q.Sign() <= 0 {
			bad(name, q.String(), "a quantity greater than 0")
		}
	}
	if c.MaxPods < 1 || c.MaxPods > 10_000 {
		bad("pods", c.MaxPods, "between 1 and 10000")
	}
	if c.Zones < 0 {
		bad("zones", c.Zones, "at least 0")
	}
	for key, value := range c.Labels {
		if msgs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(msgs) > 0 {
			bad("labels", key+"="+value, "a label: "+msgs[0])
		}
	}
	last := c.First + c.Nodes
	if !c.NodeCIDR.Addr().Is4() || 1<<(32-c.NodeCIDR.Bits()) < last+2 {
		bad("node-cidr", c.NodeCIDR, fmt.Sprintf("an IPv4 range with room for %d nodes", last))
	}
	switch mask := c.podMask(); {
	case !c.PodCIDR.Addr().Is4() || c.PodCIDR.Bits() > mask || 1<<(mask-c.PodCIDR.Bits()) < last:
		bad("pod-cidr", c.PodCIDR, fmt.Sprintf("an IPv4 range with room for a /%d for each of %d nodes", mask, last))
	case c.PodCIDR.Overlaps(c.NodeCIDR):
		bad("pod-cidr", c.PodCIDR, "a range that does not overlap node-cidr "+c.NodeCIDR.String())
	}
	if c.RenewEvery < time.Second || c.StatusEvery < time.Second {
		bad("renew and status intervals", fmt.Sprintf("%s, %s", c.RenewEvery, c.StatusEvery), "at least 1s")
	}
	if c.Writers < 1 {
		bad("writers", c.Writers, "at least 1")
	}
	return errors.Join(errs...)
}

// podMask is the size of a node's range: twice as many addresses as pods, as
// upstream's /24 for 110.
func (c *Config) podMask() int {
	return 32 - max(8, bits.Len(uint(2*c.MaxPods-1))) //nolint:gosec // validated
}

// nodeAddress is that of the i-th node.
func (c *Config) nodeAddress(i int) netip.Addr { return plus(c.NodeCIDR.Masked().Addr(), i+1) }

// podRange is that of the i-th node's pods.
func (c *Config) podRange(i int) netip.Prefix {
	mask := c.podMask()
	return netip.PrefixFrom(plus(c.PodCIDR.Masked().Addr(), i<<(32-mask)), mask)
}

// plus is the n-th address after an IPv4 address.
func plus(a netip.Addr, n int) netip.Addr {
	b := a.As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n) //nolint:gosec // within a range that was validated
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}
