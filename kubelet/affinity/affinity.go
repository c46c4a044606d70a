package affinity

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/periplus/periplus/base"
)

// ErrLocality is returned when the topology policy lets a pod not run.
var ErrLocality = errors.New("Resources cannot be allocated with Topology locality") //nolint:staticcheck // upstream's wording

// LocalityReason is the reason that goes with ErrLocality.
const LocalityReason = "TopologyAffinityError"

// An Assigner gives processors and memory. Its methods may be called from several
// goroutines.
type Assigner struct {
	cfg Config

	mu     sync.Mutex  // guards the rest
	cpus   *processors // nil: policy none
	memory *memory     // nil: policy None
	places map[owner]Mask
}

// New returns an Assigner that knows what an earlier life gave.
func New(c Config) (*Assigner, error) {
	a := &Assigner{cfg: c, places: map[owner]Mask{}}
	if len(c.Machine.Nodes) > 8 {
		return nil, fmt.Errorf("affinity: %d NUMA nodes are more than the 8 that can be handled", len(c.Machine.Nodes))
	}
	if c.CPU == Static {
		var err error
		if a.cpus, err = newProcessors(&c); err != nil {
			return nil, fmt.Errorf("affinity: %w", err)
		}
	}
	if c.Memory == MemoryStatic {
		a.memory = newMemory(&c)
	}
	if err := a.load(); err != nil {
		c.Log.Warn("it is not known which processors containers have", base.KeyError, err)
	}
	return a, nil
}

// Admit gives all containers of a pod what they get, or none of it.
func (a *Assigner) Admit(pod *corev1.Pod, class corev1.PodQOSClass) error {
	a.mu.Lock()
	changed, err := a.admitLocked(pod, class)
	if err != nil {
		a.freeLocked(pod.UID)
	} else if changed {
		err = a.saveLocked()
	}
	a.mu.Unlock()
	if changed && err == nil {
		a.cfg.Changed()
	}
	return err
}

func (a *Assigner) admitLocked(pod *corev1.Pod, class corev1.PodQOSClass) (changed bool, err error) {
	reusable := cpuset.New()
	var whole *Mask
	if a.cfg.Topology != None && a.cfg.Scope == ScopePod {
		var lists [][]Hint
		sum := podSum(pod)
		lists = a.hintsLocked(class, &sum, reusable)
		best, ok := merge(a.cfg.Topology, len(a.cfg.Machine.Nodes), lists)
		if !ok {
			return false, ErrLocality
		}
		whole = &best.Mask
	}
	give := func(c *corev1.Container, keep bool) error {
		o := owner{pod.UID, c.Name}
		place := Mask(1)<<len(a.cfg.Machine.Nodes) - 1
		if whole != nil {
			place = *whole
		} else if a.cfg.Topology != None {
			best, ok := merge(a.cfg.Topology, len(a.cfg.Machine.Nodes), a.hintsLocked(class, c, reusable))
			if !ok {
				return ErrLocality
			}
			place = best.Mask
		}
		a.places[o] = place
		if n := guaranteed(class, c); n > 0 && a.cpus != nil {
			if _, had := a.cpus.given[o]; !had {
				got, err := a.cpus.take(o, n, place, reusable)
				if err != nil {
					return err
				}
				changed = true
				if keep {
					reusable = reusable.Union(got)
				} else {
					reusable = reusable.Difference(got)
				}
			}
		}
		if bytes := c.Resources.Requests.Memory().Value(); a.memory != nil && class == corev1.PodQOSGuaranteed && bytes > 0 && !keep {
			if _, had := a.memory.given[o]; !had {
				if err := a.memory.take(o, bytes, place); err != nil {
					return err
				}
				changed = true
			}
		}
		return nil
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		stays := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if err := give(c, !stays); err != nil {
			return changed, err
		}
	}
	for i := range pod.Spec.Containers {
		if err := give(&pod.Spec.Containers[i], false); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// podSum is a container that wants what all of the pod's want together.
func podSum(pod *corev1.Pod) corev1.Container {
	out := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}}
	add := func(to, from corev1.ResourceList) {
		for name, q := range from {
			sum := to[name]
			sum.Add(q)
			to[name] = sum
		}
	}
	for i := range pod.Spec.Containers {
		add(out.Resources.Requests, pod.Spec.Containers[i].Resources.Requests)
		add(out.Resources.Limits, pod.Spec.Containers[i].Resources.Limits)
	}
	return out
}

// hintsLocked lists, for each thing that a container wants, where it could come from.
func (a *Assigner) hintsLocked(class corev1.PodQOSClass, c *corev1.Container, reusable cpuset.CPUSet) [][]Hint {
	var lists [][]Hint
	if n := guaranteed(class, c); n > 0 && a.cpus != nil {
		lists = append(lists, a.cpus.hints(n, reusable))
	}
	if bytes := c.Resources.Requests.Memory().Value(); bytes > 0 && a.memory != nil && class == corev1.PodQOSGuaranteed {
		lists = append(lists, a.memory.hints(bytes))
	}
	for name, q := range c.Resources.Limits {
		if a.cfg.Devices == nil {
			break
		}
		nodes, known := a.cfg.Devices(string(name))
		if !known || q.Value() == 0 || !anyPlaced(nodes) {
			continue
		}
		fits := func(m Mask) bool {
			n := int64(0)
			for _, on := range nodes {
				for _, id := range on {
					if a.maskOf(id)&m != 0 {
						n++
						break
					}
				}
			}
			return n >= q.Value()
		}
		lists = append(lists, hints(len(a.cfg.Machine.Nodes), fits, fits))
	}
	return lists
}

func anyPlaced(nodes [][]int) bool {
	for _, on := range nodes {
		if len(on) > 0 {
			return true
		}
	}
	return false
}

func (a *Assigner) maskOf(node int) Mask {
	for i, n := range a.cfg.Machine.Nodes {
		if n.ID == node {
			return 1 << i
		}
	}
	return 0
}

// Place is the NUMA nodes where a container's devices should be; nil: anywhere.
func (a *Assigner) Place(pod types.UID, container string) []int {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, ok := a.places[owner{pod, container}]
	if !ok || a.cfg.Topology == None {
		return nil
	}
	var out []int
	for _, i := range m.nodes() {
		out = append(out, a.cfg.Machine.Nodes[i].ID)
	}
	return out
}

// Of is what a container may use.
func (a *Assigner) Of(pod types.UID, container string) Assignment {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out Assignment
	o := owner{pod, container}
	if a.cpus != nil {
		if s, ok := a.cpus.given[o]; ok {
			out.CPUs = s.String()
		} else {
			out.CPUs = a.cpus.shared().String()
		}
	}
	if a.memory != nil {
		if s, ok := a.memory.given[o]; ok {
			out.Memory = a.memory.list(s.Mask)
		}
	}
	return out
}

// Exclusive says whether a container has processors for itself.
func (a *Assigner) Exclusive(pod types.UID, container string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cpus == nil {
		return false
	}
	_, ok := a.cpus.given[owner{pod, container}]
	return ok
}

// Free takes everything of a pod back.
func (a *Assigner) Free(pod types.UID) {
	a.mu.Lock()
	changed := a.freeLocked(pod)
	if changed {
		if err := a.saveLocked(); err != nil {
			a.cfg.Log.Warn("the state of processors cannot be kept", base.KeyError, err)
		}
	}
	a.mu.Unlock()
	if changed {
		a.cfg.Changed()
	}
}

// Keep takes back what pods have that are not known any more.
func (a *Assigner) Keep(known func(types.UID) bool) {
	a.mu.Lock()
	gone := map[types.UID]bool{}
	if a.cpus != nil {
		for o := range a.cpus.given {
			gone[o.pod] = !known(o.pod)
		}
	}
	if a.memory != nil {
		for o := range a.memory.given {
			gone[o.pod] = !known(o.pod)
		}
	}
	a.mu.Unlock()
	for uid, is := range gone {
		if is {
			a.Free(uid)
		}
	}
}

func (a *Assigner) freeLocked(pod types.UID) (changed bool) {
	for o := range a.places {
		if o.pod == pod {
			delete(a.places, o)
		}
	}
	if a.cpus != nil {
		for o := range a.cpus.given {
			if o.pod == pod {
				delete(a.cpus.given, o)
				changed = true
			}
		}
	}
	if a.memory != nil {
		for o := range a.memory.given {
			if o.pod == pod {
				delete(a.memory.given, o)
				changed = true
			}
		}
	}
	return changed
}

// state is what the files hold, in upstream's shape.
type state struct {
	Policy string                          `json:"policyName"`
	Shared string                          `json:"defaultCpuSet,omitempty"`
	CPUs   map[types.UID]map[string]string `json:"entries,omitempty"`
	Memory map[types.UID]map[string]share  `json:"memory,omitempty"`
}

func (a *Assigner) saveLocked() error {
	var errs []error
	if a.cpus != nil {
		s := state{Policy: Static, Shared: a.cpus.shared().String(), CPUs: map[types.UID]map[string]string{}}
		for o, set := range a.cpus.given {
			if s.CPUs[o.pod] == nil {
				s.CPUs[o.pod] = map[string]string{}
			}
			s.CPUs[o.pod][o.container] = set.String()
		}
		errs = append(errs, write(filepath.Join(a.cfg.Dir, "cpu_manager_state"), s))
	}
	if a.memory != nil {
		s := state{Policy: MemoryStatic, Memory: map[types.UID]map[string]share{}}
		for o, v := range a.memory.given {
			if s.Memory[o.pod] == nil {
				s.Memory[o.pod] = map[string]share{}
			}
			s.Memory[o.pod][o.container] = v
		}
		errs = append(errs, write(filepath.Join(a.cfg.Dir, "memory_manager_state"), s))
	}
	return errors.Join(errs...)
}

// write replaces a file as a whole.
func write(path string, s state) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return fmt.Errorf("keep %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

func (a *Assigner) load() error {
	read := func(name string) (state, error) {
		var s state
		b, err := os.ReadFile(filepath.Join(a.cfg.Dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return s, nil
		}
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		return s, err
	}
	if a.cpus != nil {
		s, err := read("cpu_manager_state")
		if err != nil {
			return err
		}
		for pod, list := range s.CPUs {
			for name, text := range list {
				set, err := cpuset.Parse(text)
				if err != nil {
					return err
				}
				a.cpus.given[owner{pod, name}] = set.Intersection(a.cpus.all)
			}
		}
	}
	if a.memory != nil {
		s, err := read("memory_manager_state")
		if err != nil {
			return err
		}
		for pod, list := range s.Memory {
			for name, v := range list {
				if v.Mask < 1<<len(a.memory.nodes) {
					a.memory.given[owner{pod, name}] = v
				}
			}
		}
	}
	return nil
}
