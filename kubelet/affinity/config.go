package affinity

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/periplus/periplus/linux/numa"
)

// Names of policies.
const (
	None           = "none"
	Static         = "static"
	MemoryNone     = "None"
	MemoryStatic   = "Static"
	BestEffort     = "best-effort"
	Restricted     = "restricted"
	SingleNUMANode = "single-numa-node"
	ScopeContainer = "container"
	ScopePod       = "pod"
	FullPCPUsOnly  = "full-pcpus-only"
)

// Policies are what a user chooses.
type Policies struct {
	CPU        string // none or static
	CPUOptions map[string]string
	Memory     string // None or Static
	Topology   string // none, best-effort, restricted, single-numa-node
	Scope      string // container or pod
	// ReservedCPUs is a list like 0,2-3 of processors that no container gets for
	// itself; empty: as many as are reserved, the first ones.
	ReservedCPUs string
}

// DefaultPolicies are upstream's: nothing of it.
func DefaultPolicies() Policies {
	return Policies{CPU: None, Memory: MemoryNone, Topology: None, Scope: ScopeContainer}
}

// On says whether there is anything to do.
func (p Policies) On() bool { return p.CPU == Static || p.Memory == MemoryStatic || p.Topology != None }

// Validate names the flag that is wrong. reserved is the CPU reservation in millicores.
func (p Policies) Validate(reserved int64) error {
	var errs []error
	one := func(flag, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			errs = append(errs, fmt.Errorf("%s: %q is not allowed: must be one of %q", flag, value, allowed))
		}
	}
	one("cpu-manager-policy", p.CPU, None, Static)
	one("memory-manager-policy", p.Memory, MemoryNone, MemoryStatic)
	one("topology-manager-policy", p.Topology, None, BestEffort, Restricted, SingleNUMANode)
	one("topology-manager-scope", p.Scope, ScopeContainer, ScopePod)
	for name, value := range p.CPUOptions {
		one("cpu-manager-policy-options", name, FullPCPUsOnly)
		one("cpu-manager-policy-options", value, "true", "false")
	}
	if _, err := cpuset.Parse(p.ReservedCPUs); err != nil {
		errs = append(errs, fmt.Errorf("reserved-cpus: %q is not allowed: must be a list like 0,2-3", p.ReservedCPUs))
	}
	if p.CPU == Static && p.ReservedCPUs == "" && reserved <= 0 {
		errs = append(errs, errors.New("cpu-manager-policy: the static policy requires system-reserved.cpu + kube-reserved.cpu to be greater than zero"))
	}
	return errors.Join(errs...)
}

// Config of an Assigner.
type Config struct {
	Policies
	Machine numa.Machine
	// ReservedMilliCPU and ReservedMemory (bytes) are kept for the system.
	ReservedMilliCPU, ReservedMemory int64
	// Dir holds cpu_manager_state and memory_manager_state.
	Dir string
	// Devices returns the NUMA nodes of the free devices of a resource, one entry each.
	Devices func(resource string) (nodes [][]int, known bool)
	// Changed is called when the processors that containers share have changed.
	Changed func()
	Log     *slog.Logger
}

// An Assignment is what a container may use; empty: everything.
type Assignment struct{ CPUs, Memory string }

type owner struct {
	pod       types.UID
	container string
}

// guaranteed says whether a container of a pod may have processors for itself, and
// how many: its request, if that is whole.
func guaranteed(class corev1.PodQOSClass, c *corev1.Container) int {
	q := c.Resources.Requests.Cpu()
	if class != corev1.PodQOSGuaranteed || q.Value()*1000 != q.MilliValue() {
		return 0
	}
	return int(q.Value())
}
