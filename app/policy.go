package app

import (
	"context"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/cni/policy"
)

// policyStage enforces NetworkPolicies on the node's pods.
func (w *worker) policyStage(after ...string) stage {
	return stage{name: "policies", after: after, run: func(ctx context.Context, ready func()) error {
		e, err := policy.New(policy.Config{Informers: w.shared(), Node: w.config.NodeName, Log: w.log.With(base.KeyComponent, "policy")})
		if err != nil {
			return err
		}
		defer e.Close()
		ready()
		return e.Run(ctx)
	}}
}
