package horizontalpodautoscaler

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/client/conditions"
)

// Tolerances are by how much usage may differ from the target before anything happens.
type tolerances struct{ down, up float64 }

func (t tolerances) allow(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// propose returns how many replicas bring the ratio of usage and target to one.
//
//  1. If all figures are there, that many times as many as are ready.
//  2. Pods without figures use what keeps the change small: what assumed says when
//     there would be fewer, nothing when there would be more; so do those that start.
//  3. If the ratio is then on the other side, or too close to one, nothing changes.
func propose(current int32, m figures, g *groups, t tolerances, ratioOf func(figures) (float64, error), assumed func(pod string) int64) (int32, error) {
	ratio, err := ratioOf(m)
	if err != nil {
		return 0, err
	}
	starting := len(g.unready) > 0 && ratio > 1
	if !starting && len(g.missing) == 0 {
		if t.allow(ratio) {
			return current, nil
		}
		return saturated(math.Ceil(ratio * float64(g.ready))), nil
	}
	for _, name := range g.missing {
		switch {
		case ratio < 1:
			m[name] = figure{value: assumed(name)}
		case ratio > 1:
			m[name] = figure{}
		}
	}
	if starting {
		for _, name := range g.unready {
			m[name] = figure{}
		}
	}
	again, err := ratioOf(m)
	if err != nil {
		return 0, err
	}
	if t.allow(again) || ratio < 1 && again > 1 || ratio > 1 && again < 1 {
		return current, nil
	}
	n := saturated(math.Ceil(again * float64(len(m))))
	if again < 1 && n > current || again > 1 && n < current {
		return current, nil
	}
	return n, nil
}

// A utilization is usage in percent of what was requested, and per pod in thousandths.
type utilization struct {
	ratio   float64 // to the target
	percent int32
	average int64
}

// utilizationOf compares figures with requests. Pods without a request are not known.
func utilizationOf(m figures, requests map[string]int64, target int32) (utilization, error) {
	var used, requested, n int64
	for name, f := range m {
		if request, ok := requests[name]; ok {
			used += f.value
			requested += request
			n++
		}
	}
	if requested == 0 {
		return utilization{}, fmt.Errorf("no metrics returned matched known pods")
	}
	percent := saturated(float64(used * 100 / requested))
	return utilization{float64(percent) / float64(target), percent, used / n}, nil
}

// average returns the mean of figures that are not empty.
func average(m figures) int64 {
	sum := int64(0)
	for _, f := range m {
		sum += f.value
	}
	return sum / int64(len(m))
}

// byUtilization proposes replicas for a target in percent of requests.
func (s *sight) byUtilization(current, target int32, resource corev1.ResourceName, container string) (int32, utilization, error) {
	m, err := s.api.resource(s.ctx, s.hpa.Namespace, resource, s.selector, container)
	if err != nil {
		return 0, utilization{}, fmt.Errorf("unable to get metrics for resource %s: %w", resource, err)
	}
	pods, err := s.targeted()
	if err != nil {
		return 0, utilization{}, err
	}
	g := group(pods, m, resource == corev1.ResourceCPU, &s.Options.Autoscaling, s.now)
	if err := g.drop(m); err != nil {
		return 0, utilization{}, err
	}
	asked, err := requests(pods, container, resource)
	if err != nil {
		return 0, utilization{}, err
	}
	found, err := utilizationOf(m, asked, target)
	if err != nil {
		return 0, utilization{}, err
	}
	n, err := propose(current, m, &g, s.tolerances(), func(m figures) (float64, error) {
		u, err := utilizationOf(m, asked, target)
		return u.ratio, err
	}, func(pod string) int64 { return asked[pod] * int64(max(100, target)) / 100 })
	return n, found, err
}

// byAverage proposes replicas for a target per pod, and returns the average.
func (s *sight) byAverage(current int32, target int64, m figures, cpu bool) (int32, int64, error) {
	pods, err := s.targeted()
	if err != nil {
		return 0, 0, err
	}
	g := group(pods, m, cpu, &s.Options.Autoscaling, s.now)
	if err := g.drop(m); err != nil {
		return 0, 0, err
	}
	found := average(m)
	n, err := propose(current, m, &g, s.tolerances(), func(m figures) (float64, error) {
		return float64(average(m)) / float64(target), nil
	}, func(string) int64 { return target })
	return n, found, err
}

// byValue proposes replicas for one value of the whole target: as many times as
// many as are ready, or as the value says when there are none.
func (s *sight) byValue(current int32, value, target int64) (int32, error) {
	ratio := float64(value) / float64(target)
	switch {
	case current == 0:
		return saturated(math.Ceil(ratio)), nil
	case s.tolerances().allow(ratio):
		return current, nil
	}
	pods, err := s.targeted()
	if err != nil {
		return 0, fmt.Errorf("unable to calculate ready pods: %w", err)
	}
	ready := 0
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && conditions.PodReady(p) {
			ready++
		}
	}
	return saturated(math.Ceil(ratio * float64(ready))), nil
}

// byShare proposes replicas for one value that the pods share, and returns each one's part.
func (s *sight) byShare(replicas int32, value, target int64) (int32, int64) {
	n := replicas
	if !s.tolerances().allow(float64(value) / (float64(target) * float64(replicas))) {
		n = saturated(math.Ceil(float64(value) / float64(target)))
	}
	share := math.Ceil(float64(value) / float64(replicas))
	if share >= math.MaxInt64 {
		return n, math.MaxInt64
	}
	return n, int64(share)
}

// targeted returns the pods that the autoscaler is about.
func (s *sight) targeted() ([]*corev1.Pod, error) {
	pods, err := s.pods.Pods(s.hpa.Namespace).List(s.selector)
	if err != nil {
		return nil, fmt.Errorf("unable to get pods while calculating replica count: %w", err)
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("no pods returned by selector while calculating replica count")
	}
	return pods, nil
}

func (s *sight) tolerances() tolerances {
	t := tolerances{s.Options.Autoscaling.Tolerance, s.Options.Autoscaling.Tolerance}
	if b := s.hpa.Spec.Behavior; b != nil {
		if b.ScaleDown != nil && b.ScaleDown.Tolerance != nil {
			t.down = b.ScaleDown.Tolerance.AsApproximateFloat64()
		}
		if b.ScaleUp != nil && b.ScaleUp.Tolerance != nil {
			t.up = b.ScaleUp.Tolerance.AsApproximateFloat64()
		}
	}
	return t
}
