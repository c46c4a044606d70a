package app

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/cni/policy"
	"github.com/periplus/periplus/journey"
)

// policyStage enforces NetworkPolicies on the node's pods.
func (w *worker) policyStage(after ...string) stage {
	return stage{name: "policies", after: after, run: func(ctx context.Context, ready func()) error {
		e, err := policy.New(policy.Config{
			Informers: w.shared(), Node: w.config.NodeName, OnApplied: w.policySteps(), Log: w.log.With(base.KeyComponent, "policy"),
		})
		if err != nil {
			return err
		}
		defer e.Close()
		ready()
		return e.Run(ctx)
	}}
}

// policySteps tells the journeys of NetworkPolicies when they, or changes of them, are
// in force on this node. Those that were there before this process are not told again.
func (w *worker) policySteps() func(*policy.Layout) {
	began := time.Now().Truncate(time.Second)
	inForce := map[types.UID]int64{}
	lister := w.shared().Networking().V1().NetworkPolicies().Lister()
	return func(*policy.Layout) {
		list, err := lister.List(labels.Everything())
		if err != nil {
			return
		}
		now := make(map[types.UID]int64, len(list))
		for _, p := range list {
			now[p.UID] = p.Generation
			before, known := inForce[p.UID]
			if known && before == p.Generation || !known && p.CreationTimestamp.Time.Before(began) {
				continue
			}
			w.record.Record(journey.Moment("policy", "network policy in force", "NetworkPolicy", p, time.Now()).On(w.config.NodeName))
		}
		inForce = now
	}
}
