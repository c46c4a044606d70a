package noderesources

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/scheduler"
)

// Kinds of Strategy.
const (
	LeastAllocated           = "LeastAllocated"
	MostAllocated            = "MostAllocated"
	RequestedToCapacityRatio = "RequestedToCapacityRatio"
)

// A Strategy turns use into a score.
type Strategy struct {
	Type      string     // LeastAllocated when empty
	Resources []Resource // CPU and memory with weight 1 when empty
	Shape     []Point    // for RequestedToCapacityRatio: ascending utilisation
}

// A Resource counts in a score with a weight of 1 to 100.
type Resource struct {
	Name   v1.ResourceName
	Weight int64
}

// A Point gives a utilisation of 0 to 100 % a score of 0 to 10.
type Point struct{ Utilization, Score int64 }

type strategy struct {
	kind      string
	resources []weighted
	shape     []Point
}

type weighted struct {
	index  int
	weight int64
}

func newStrategy(s Strategy, table *scheduler.ResourceTable) (*strategy, error) {
	out := &strategy{kind: s.Type}
	if out.kind == "" {
		out.kind = LeastAllocated
	}
	switch out.kind {
	case LeastAllocated, MostAllocated:
	case RequestedToCapacityRatio:
		if len(s.Shape) == 0 {
			return nil, fmt.Errorf("%s: strategy %s needs a shape", FitName, out.kind)
		}
		for i, p := range s.Shape {
			if p.Utilization < 0 || p.Utilization > 100 || p.Score < 0 || p.Score > 10 || i > 0 && p.Utilization <= s.Shape[i-1].Utilization {
				return nil, fmt.Errorf("%s: shape point %d is (%d, %d): utilization must ascend within 0 to 100, score be 0 to 10", FitName, i, p.Utilization, p.Score)
			}
			out.shape = append(out.shape, Point{p.Utilization, p.Score * scheduler.MaxNodeScore / 10})
		}
	default:
		return nil, fmt.Errorf("%s: strategy %q: allowed are %s, %s and %s", FitName, s.Type, LeastAllocated, MostAllocated, RequestedToCapacityRatio)
	}
	if len(s.Resources) == 0 {
		s.Resources = []Resource{{v1.ResourceCPU, 1}, {v1.ResourceMemory, 1}}
	}
	for _, r := range s.Resources {
		if r.Weight < 1 || r.Weight > 100 {
			return nil, fmt.Errorf("%s: resource %s has the weight %d, allowed are 1 to 100", FitName, r.Name, r.Weight)
		}
		out.resources = append(out.resources, weighted{table.Index(r.Name), r.Weight})
	}
	return out, nil
}

// score is the weighted mean over the resources. CPU and memory count with defaults for
// containers without requests; an extended resource counts only for pods that request it.
func (s *strategy) score(p *scheduler.PodInfo, n *scheduler.NodeInfo) int64 {
	var sum, weights int64
	for _, r := range s.resources {
		capacity := n.Allocatable.Get(r.index)
		if capacity == 0 {
			continue
		}
		var used int64
		if r.index < scheduler.EphemeralStorage {
			used = n.NonZero.Base[r.index] + p.NonZero.Base[r.index]
		} else {
			request := p.Requests.Get(r.index)
			if request == 0 && r.index >= scheduler.FirstExtra {
				continue
			}
			used = n.Requested.Get(r.index) + request
		}
		one := s.one(used, capacity)
		if s.kind == RequestedToCapacityRatio && one <= 0 {
			continue
		}
		sum += one * r.weight
		weights += r.weight
	}
	if weights == 0 {
		return 0
	}
	if s.kind == RequestedToCapacityRatio {
		return (sum + weights/2) / weights // rounded
	}
	return sum / weights
}

func (s *strategy) one(used, capacity int64) int64 {
	switch s.kind {
	case LeastAllocated:
		if used > capacity {
			return 0
		}
		return (capacity - used) * scheduler.MaxNodeScore / capacity
	case MostAllocated:
		return min(used, capacity) * scheduler.MaxNodeScore / capacity
	default:
		if used > capacity {
			return shaped(s.shape, 100)
		}
		return shaped(s.shape, used*100/capacity)
	}
}

// shaped interpolates between the points of a broken line.
func shaped(shape []Point, x int64) int64 {
	for i, p := range shape {
		if x > p.Utilization {
			continue
		}
		if i == 0 {
			return p.Score
		}
		q := shape[i-1]
		return q.Score + (p.Score-q.Score)*(x-q.Utilization)/(p.Utilization-q.Utilization)
	}
	return shape[len(shape)-1].Score
}
