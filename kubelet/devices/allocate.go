package devices

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// An Allocation is the devices of one resource that one container has.
type Allocation struct {
	Pod       types.UID                            `json:"podUID"`
	Container string                               `json:"containerName"`
	Resource  string                               `json:"resourceName"`
	IDs       []string                             `json:"deviceIDs"`
	Response  *pluginapi.ContainerAllocateResponse `json:"allocResp"`
}

func key(pod types.UID, container, resource string) string {
	return string(pod) + "/" + container + "/" + resource
}

// Allocate gives all containers of a pod their devices, or none. Devices of init
// containers that end are given to those that come after. prefer names the NUMA nodes
// that a container's devices should be of; nil: any.
func (r *Registry) Allocate(ctx context.Context, pod *corev1.Pod, prefer func(container string) []int) error {
	reusable := map[string][]string{}
	did := false
	err := func() error {
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			stays := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
			some, err := r.container(ctx, pod, c, reusable, !stays, prefer)
			if did = did || some; err != nil {
				return err
			}
		}
		for i := range pod.Spec.Containers {
			some, err := r.container(ctx, pod, &pod.Spec.Containers[i], reusable, false, prefer)
			if did = did || some; err != nil {
				return err
			}
		}
		return nil
	}()
	if err != nil {
		r.Free(pod.UID)
		return err
	}
	if !did {
		return nil
	}
	return r.save()
}

// container gives one container its devices; keep says whether others may have them
// after it.
func (r *Registry) container(ctx context.Context, pod *corev1.Pod, c *corev1.Container, reusable map[string][]string, keep bool, prefer func(string) []int) (did bool, err error) {
	names := make([]string, 0, len(c.Resources.Limits))
	for name := range c.Resources.Limits {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		q := c.Resources.Limits[corev1.ResourceName(name)]
		r.mu.Lock()
		o := r.resources[name]
		have := r.given[key(pod.UID, c.Name, name)]
		r.mu.Unlock()
		if o == nil || have != nil || q.Value() == 0 {
			continue
		}
		var nodes []int
		if prefer != nil {
			nodes = prefer(c.Name)
		}
		a, err := r.give(ctx, o, name, int(q.Value()), reusable[name], nodes)
		if err != nil {
			return did, err
		}
		a.Pod, a.Container = pod.UID, c.Name
		r.mu.Lock()
		r.given[key(pod.UID, c.Name, name)] = a
		r.mu.Unlock()
		did = true
		if keep {
			for _, id := range a.IDs {
				if !slices.Contains(reusable[name], id) {
					reusable[name] = append(reusable[name], id)
				}
			}
		} else {
			reusable[name] = slices.DeleteFunc(reusable[name], func(id string) bool { return slices.Contains(a.IDs, id) })
		}
	}
	return did, nil
}

// give chooses devices and asks the plug-in for them. Callers are serialised by admission.
func (r *Registry) give(ctx context.Context, o *offer, name string, want int, reusable []string, nodes []int) (*Allocation, error) {
	r.mu.Lock()
	p, healthy, used := o.plugin, o.healthy(), r.usedLocked(name)
	r.mu.Unlock()
	if p == nil || len(healthy) == 0 {
		return nil, fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", name)
	}
	var chosen []string
	take := func(from []string) {
		for _, id := range from {
			if len(chosen) < want && !slices.Contains(chosen, id) && slices.Contains(healthy, id) {
				chosen = append(chosen, id)
			}
		}
	}
	take(reusable)
	var free []string
	for _, id := range healthy {
		if !used[id] && !slices.Contains(chosen, id) {
			free = append(free, id)
		}
	}
	if missing := want - len(chosen); missing > len(free) {
		return nil, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", name, missing, len(free))
	}
	if len(chosen) < want {
		aligned := r.aligned(o, free, nodes)
		from := free
		if want-len(chosen) < len(aligned) {
			from = aligned
		} else {
			take(aligned)
		}
		if len(chosen) < want {
			preferred, err := p.preferred(ctx, slices.Concat(chosen, from), chosen, want)
			if err != nil {
				return nil, err
			}
			take(slices.DeleteFunc(preferred, func(id string) bool { return !slices.Contains(from, id) }))
			take(from)
		}
	}
	slices.Sort(chosen)
	resp, err := p.allocate(ctx, chosen)
	if err != nil {
		return nil, err
	}
	return &Allocation{Resource: name, IDs: chosen, Response: resp}, nil
}

// aligned are the devices on one of the NUMA nodes.
func (r *Registry) aligned(o *offer, ids []string, nodes []int) []string {
	if nodes == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, id := range ids {
		if slices.ContainsFunc(nodesOf(o.devices[id]), func(n int) bool { return slices.Contains(nodes, n) }) {
			out = append(out, id)
		}
	}
	return out
}

func (r *Registry) usedLocked(name string) map[string]bool {
	used := map[string]bool{}
	for _, a := range r.given {
		if a.Resource == name {
			for _, id := range a.IDs {
				used[id] = true
			}
		}
	}
	return used
}

// Free takes a pod's devices back.
func (r *Registry) Free(pod types.UID) {
	r.mu.Lock()
	some := false
	for k, a := range r.given {
		if a.Pod == pod {
			delete(r.given, k)
			some = true
		}
	}
	r.mu.Unlock()
	if some {
		_ = r.save() // what is still in the file is dropped with Keep
	}
}

// Keep takes back what pods have that are not known any more.
func (r *Registry) Keep(known func(types.UID) bool) {
	r.mu.Lock()
	var gone []types.UID
	for _, a := range r.given {
		if !known(a.Pod) {
			gone = append(gone, a.Pod)
		}
	}
	r.mu.Unlock()
	for _, uid := range gone {
		r.Free(uid)
	}
}

// For returns what a container was given, by resource.
func (r *Registry) For(pod types.UID, container string) []*Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*Allocation
	for _, a := range r.given {
		if a.Pod == pod && a.Container == container {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *Allocation) int { return slices.Compare([]string{a.Resource}, []string{b.Resource}) })
	return out
}

// All returns everything that was given, for those who list it.
func (r *Registry) All() []*Allocation {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*Allocation, 0, len(r.given))
	for _, a := range r.given {
		out = append(out, a)
	}
	return out
}

// BeforeStart tells plug-ins that want to know that a container of theirs starts.
func (r *Registry) BeforeStart(ctx context.Context, pod types.UID, container string) error {
	for _, a := range r.For(pod, container) {
		r.mu.Lock()
		var p *plugin
		if o := r.resources[a.Resource]; o != nil {
			p = o.plugin
		}
		r.mu.Unlock()
		if p == nil || !p.wants().GetPreStartRequired() {
			continue
		}
		call, cancel := context.WithTimeout(ctx, startTimeout)
		_, err := p.client.PreStartContainer(call, &pluginapi.PreStartContainerRequest{DevicesIds: a.IDs})
		cancel()
		if err != nil {
			return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
		}
	}
	return nil
}
