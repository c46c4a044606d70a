package noderesources

import (
	"context"
	"math"

	"github.com/periplus/periplus/scheduler"
)

// BalancedName is the name of the plug-in NodeResourcesBalancedAllocation.
const BalancedName = "NodeResourcesBalancedAllocation"

type balanced struct{}

var (
	_ scheduler.PreScorePlugin = balanced{}
	_ scheduler.ScorePlugin    = balanced{}
	_ scheduler.BatchPlugin    = balanced{}
)

// NewBalanced makes NodeResourcesBalancedAllocation.
func NewBalanced(*scheduler.Framework) (scheduler.Plugin, error) { return balanced{}, nil }

func (balanced) Name() string { return BalancedName }

// PreScore skips pods that request neither CPU nor memory: they change no balance.
func (balanced) PreScore(_ context.Context, _ *scheduler.CycleState, p *scheduler.PodInfo, _ []*scheduler.NodeInfo) *scheduler.Status {
	if p.BestEffort() {
		return scheduler.NewStatus(BalancedName, scheduler.Skip)
	}
	return nil
}

// Score compares the balance with and without the pod: 75 when the pod does not
// change it, up to 100 when it makes it better, down to 50 when it makes it worse.
func (balanced) Score(_ *scheduler.CycleState, p *scheduler.PodInfo, n *scheduler.NodeInfo) (int64, *scheduler.Status) {
	const half = scheduler.MaxNodeScore / 2
	with := balance(n, p.Requests.Base[scheduler.CPU], p.Requests.Base[scheduler.Memory])
	without := balance(n, 0, 0)
	return half + (half+with-without)/2, nil
}

// balance is 100 × (1 - standard deviation of the used shares of CPU and memory),
// 50 to 100. The deviation of two numbers is half of their difference.
func balance(n *scheduler.NodeInfo, cpu, memory int64) int64 {
	if n.Allocatable.Base[scheduler.CPU] == 0 || n.Allocatable.Base[scheduler.Memory] == 0 {
		return scheduler.MaxNodeScore
	}
	share := func(i int, more int64) float64 {
		return min(float64(n.Requested.Base[i]+more)/float64(n.Allocatable.Base[i]), 1)
	}
	deviation := math.Abs(share(scheduler.CPU, cpu)-share(scheduler.Memory, memory)) / 2
	return int64((1 - deviation) * float64(scheduler.MaxNodeScore))
}

func (balanced) Same(a, b *scheduler.PodInfo) bool {
	return a.Requests.Base[scheduler.CPU] == b.Requests.Base[scheduler.CPU] &&
		a.Requests.Base[scheduler.Memory] == b.Requests.Base[scheduler.Memory]
}
