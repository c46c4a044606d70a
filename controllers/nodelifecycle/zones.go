package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/controllers"
)

type zoneState int

const (
	zoneNormal  zoneState = iota
	zonePartial           // many of the nodes, and more than two, are not ready
	zoneFull              // all are not ready
)

// zones limits how fast NoExecute taints spread.
type zones struct {
	state map[string]zoneState
	size  map[string]int
	all   bool                 // every zone is fully disrupted
	next  map[string]time.Time // when the next node of a zone may be tainted
}

func zoneOf(n *corev1.Node) string {
	return n.Labels[corev1.LabelTopologyRegion] + ":\x00:" + n.Labels[corev1.LabelTopologyZone]
}

// rezone counts ready nodes. The nodes of a zone whose state has changed are looked at
// again; all are when all zones were lost and one comes back, or the other way round.
func (r *reconciler) rezone() {
	r.counting.Lock() // who comes meanwhile must not go by the old count
	defer r.counting.Unlock()
	if !r.recount.Swap(false) {
		return
	}
	nodes, err := r.nodes.List(labels.Everything())
	if err != nil {
		return
	}
	total, bad := map[string]int{}, map[string]int{}
	for _, n := range nodes {
		zone := zoneOf(n)
		total[zone]++
		if c := conditions.Node(&n.Status, corev1.NodeReady); c == nil || c.Status != corev1.ConditionTrue {
			bad[zone]++
		}
	}
	state := make(map[string]zoneState, len(total))
	all := len(total) > 0
	for zone, n := range total {
		state[zone] = stateOf(n, bad[zone], r.Options.Eviction.UnhealthyZone)
		all = all && state[zone] == zoneFull
	}
	r.mu.Lock()
	flipped, before := r.zones.all != all, r.zones.state
	r.zones.state, r.zones.size, r.zones.all = state, total, all
	r.mu.Unlock()
	for _, n := range nodes {
		zone := zoneOf(n)
		if was, known := before[zone]; flipped || known && was != state[zone] {
			r.Queue.Add(controllers.Key{Name: n.Name})
		}
	}
}

func stateOf(total, bad int, unhealthy float64) zoneState {
	switch {
	case bad == total && bad > 0:
		return zoneFull
	case bad > 2 && float64(bad)/float64(total) >= unhealthy:
		return zonePartial
	}
	return zoneNormal
}

// mayExecute says whether the node may have a NoExecute taint now, and if not yet,
// when to ask again. A node that has one keeps it.
func (r *reconciler) mayExecute(node *corev1.Node, now time.Time) (bool, time.Duration) {
	c := conditions.Node(&node.Status, corev1.NodeReady)
	if c == nil || c.Status == corev1.ConditionTrue {
		return false, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.zones.all {
		return false, 0
	}
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute && owned(t) {
			return true, 0
		}
	}
	zone := zoneOf(node)
	o := &r.Options.Eviction
	rate := o.Rate
	if r.zones.state[zone] == zonePartial {
		if r.zones.size[zone] <= o.LargeCluster {
			return false, 0 // nothing is evicted until the zone's state changes, which wakes us
		}
		rate = o.SecondaryRate
	}
	if rate <= 0 {
		return false, 0
	}
	if wait := r.zones.next[zone].Sub(now); wait > 0 {
		return false, wait
	}
	r.zones.next[zone] = now.Add(time.Duration(min(float64(time.Second)/rate, float64(1<<62))))
	return true, 0
}
