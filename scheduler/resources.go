package scheduler

import (
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Indexes of the resources that every node has. Extended resources, huge pages
// and attachable volumes follow from FirstExtra in the order of their appearance.
const (
	CPU              = 0 // in thousandths of a core
	Memory           = 1 // bytes
	EphemeralStorage = 2 // bytes
	FirstExtra       = 3
)

// What a container without a request counts for in scores (not in filters).
const (
	DefaultMilliCPU int64 = 100
	DefaultMemory   int64 = 200 << 20
)

// Resources are amounts by resource index.
type Resources struct {
	Base  [FirstExtra]int64
	Extra []int64 // by index - FirstExtra; may be shorter than the table
}

// Get returns the amount of resource i.
func (r *Resources) Get(i int) int64 {
	if i < FirstExtra {
		return r.Base[i]
	}
	if i -= FirstExtra; i < len(r.Extra) {
		return r.Extra[i]
	}
	return 0
}

func (r *Resources) at(i int) *int64 {
	if i < FirstExtra {
		return &r.Base[i]
	}
	i -= FirstExtra
	if i >= len(r.Extra) {
		r.Extra = append(r.Extra, make([]int64, i+1-len(r.Extra))...)
	}
	return &r.Extra[i]
}

// add adds sign × o. Extra is replaced, not changed, because clones share it.
func (r *Resources) add(o *Resources, sign int64) {
	for i := range r.Base {
		r.Base[i] += sign * o.Base[i]
	}
	if len(o.Extra) == 0 {
		return
	}
	r.Extra = slices.Clone(r.Extra)
	for i, n := range o.Extra {
		if n != 0 {
			*r.at(FirstExtra + i) += sign * n
		}
	}
}

// Equal reports whether the amounts are the same.
func (r *Resources) Equal(o *Resources) bool {
	if r.Base != o.Base {
		return false
	}
	for i := range max(len(r.Extra), len(o.Extra)) {
		if r.Get(FirstExtra+i) != o.Get(FirstExtra+i) {
			return false
		}
	}
	return true
}

// IsZero reports whether no resource is requested.
func (r *Resources) IsZero() bool {
	return r.Base == [FirstExtra]int64{} && !slices.ContainsFunc(r.Extra, func(n int64) bool { return n != 0 })
}

// A ResourceTable interns resource names, so that amounts are slices of numbers.
// It only grows; a cluster has a handful of names.
type ResourceTable struct {
	mu    sync.RWMutex
	index map[v1.ResourceName]int // guarded by mu
	names []v1.ResourceName       // guarded by mu
}

// NewResourceTable returns a table that knows the three basic resources.
func NewResourceTable() *ResourceTable {
	return &ResourceTable{
		index: map[v1.ResourceName]int{},
		names: []v1.ResourceName{CPU: v1.ResourceCPU, Memory: v1.ResourceMemory, EphemeralStorage: v1.ResourceEphemeralStorage},
	}
}

// Index returns the index of name, a new one for a new name.
func (t *ResourceTable) Index(name v1.ResourceName) int {
	switch name { // without the lock
	case v1.ResourceCPU:
		return CPU
	case v1.ResourceMemory:
		return Memory
	case v1.ResourceEphemeralStorage:
		return EphemeralStorage
	}
	t.mu.RLock()
	i, ok := t.index[name]
	t.mu.RUnlock()
	if ok {
		return i
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, ok := t.index[name]; ok {
		return i
	}
	i = len(t.names)
	t.names = append(t.names, name)
	t.index[name] = i
	return i
}

// Name returns the name of resource i.
func (t *ResourceTable) Name(i int) v1.ResourceName {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.names[i]
}

// amount returns q in the unit of resource i.
func amount(i int, q resource.Quantity) int64 {
	if i == CPU {
		return q.MilliValue()
	}
	return q.Value()
}

// List returns list as amounts, without "pods", which NodeInfo counts apart.
func (t *ResourceTable) List(list v1.ResourceList) Resources {
	var r Resources
	t.addList(&r, list)
	return r
}

func (t *ResourceTable) addList(r *Resources, list v1.ResourceList) {
	for name, q := range list {
		if name == v1.ResourcePods {
			continue
		}
		i := t.Index(name)
		*r.at(i) += amount(i, q)
	}
}

// Requests returns what a pod needs, and the same with defaults for containers
// that request no CPU or memory, which scores use.
//
// Containers add up, an init container counts by the maximum, a restartable init
// container (sidecar) adds to all that come after it, overhead is added, pod-level
// requests replace the sums (KEP-753, KEP-2837), and while a resize is under way the
// greater of desired and allocated counts (KEP-1287).
func (t *ResourceTable) Requests(pod *v1.Pod) (requests, nonZero Resources) {
	if plain(pod) {
		for i := range pod.Spec.Containers {
			list := pod.Spec.Containers[i].Resources.Requests
			t.addList(&requests, list)
			if _, ok := list[v1.ResourceCPU]; !ok {
				nonZero.Base[CPU] += DefaultMilliCPU
			}
			if _, ok := list[v1.ResourceMemory]; !ok {
				nonZero.Base[Memory] += DefaultMemory
			}
		}
		nonZero.add(&requests, 1)
		return requests, nonZero
	}
	options := resourcehelper.PodResourcesOptions{UseStatusResources: true}
	requests = t.List(resourcehelper.PodRequests(pod, options))
	options.NonMissingContainerRequests = v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(DefaultMilliCPU, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(DefaultMemory, resource.DecimalSI),
	}
	nonZero = t.List(resourcehelper.PodRequests(pod, options))
	return requests, nonZero
}

// plain reports whether a pod's requests are the sum of its containers' requests.
func plain(pod *v1.Pod) bool {
	if len(pod.Spec.InitContainers) > 0 || len(pod.Spec.Overhead) > 0 || pod.Spec.Resources != nil {
		return false
	}
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Resources != nil || len(s.AllocatedResources) > 0 {
			return false
		}
	}
	return true
}
