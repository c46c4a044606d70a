package imagelocality

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "ImageLocality"

const (
	mb           = 1 << 20
	minSize      = 23 * mb   // images below count nothing
	maxContainer = 1000 * mb // per container, images above count no more
)

type plugin struct {
	f    *scheduler.Framework
	slot scheduler.Slot
}

var (
	_ scheduler.PreScorePlugin = (*plugin)(nil)
	_ scheduler.ScorePlugin    = (*plugin)(nil)
	_ scheduler.BatchPlugin    = (*plugin)(nil)
)

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) { return &plugin{f, f.NewSlot()}, nil }

func (*plugin) Name() string { return Name }

// wanted are the pod's images that some node has.
type wanted struct {
	names      []string
	containers int64
}

// PreScore skips when no node has any of the images: all scores would be 0.
func (pl *plugin) PreScore(_ context.Context, state *scheduler.CycleState, p *scheduler.PodInfo, _ []*scheduler.NodeInfo) *scheduler.Status {
	var w wanted
	each(p.Pod, func(image string) {
		w.containers++
		if image = scheduler.ImageName(image); pl.f.Cache.HasImage(image) {
			w.names = append(w.names, image)
		}
	})
	if len(w.names) == 0 {
		return scheduler.NewStatus(Name, scheduler.Skip)
	}
	state.Set(pl.slot, &w)
	return nil
}

func each(pod *v1.Pod, f func(image string)) {
	for i := range pod.Spec.InitContainers {
		f(pod.Spec.InitContainers[i].Image)
	}
	for i := range pod.Spec.Containers {
		f(pod.Spec.Containers[i].Image)
	}
}

func (pl *plugin) Score(state *scheduler.CycleState, _ *scheduler.PodInfo, n *scheduler.NodeInfo) (int64, *scheduler.Status) {
	w, _ := state.Get(pl.slot).(*wanted)
	if w == nil || len(n.Images) == 0 {
		return 0, nil
	}
	nodes := float64(len(pl.f.Snapshot().Nodes))
	var sum int64
	for _, name := range w.names {
		if s := n.Images[name]; s != nil {
			sum += int64(float64(s.Size) * (float64(s.Nodes()) / nodes))
		}
	}
	highest := maxContainer * w.containers
	sum = min(max(sum, minSize), highest)
	return scheduler.MaxNodeScore * (sum - minSize) / (highest - minSize), nil
}

func (*plugin) Same(a, b *scheduler.PodInfo) bool {
	x, y := &a.Pod.Spec, &b.Pod.Spec
	if len(x.InitContainers) != len(y.InitContainers) || len(x.Containers) != len(y.Containers) {
		return false
	}
	for i := range x.InitContainers {
		if x.InitContainers[i].Image != y.InitContainers[i].Image {
			return false
		}
	}
	for i := range x.Containers {
		if x.Containers[i].Image != y.Containers[i].Image {
			return false
		}
	}
	return true
}
