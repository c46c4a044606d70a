package app

import (
	"context"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/cni"
	cniall "github.com/periplus/periplus/cni/all"
	"github.com/periplus/periplus/linux/link"
)

// networkStage lets pods reach those of other nodes.
func (w *worker) networkStage(after ...string) stage {
	return stage{name: "network", after: after, run: func(ctx context.Context, ready func()) error {
		b, err := cniall.NewBackbone(w.config.PodNetwork)
		if err != nil {
			return err
		}
		defer b.Close()
		nodes := w.shared().Core().V1().Nodes()
		nodes.Informer()
		w.shared().StartWithContext(ctx)
		ready()
		return cni.Follow(ctx, nodes, w.config.NodeName, b, nil, w.log.With(base.KeyComponent, "network"))
	}}
}

// podMTU is the greatest packet of a pod that fits into one of the node's network;
// 0 leaves the choice to the bridge.
func (w *worker) podMTU() int {
	c, err := link.Open()
	if err != nil {
		return 0
	}
	defer c.Close()
	uplink, _, err := c.Holding(w.nodeIP)
	if err != nil || uplink.Name == "lo" {
		return 0 // a machine without a network has no other nodes
	}
	b, err := cniall.NewBackbone(w.config.PodNetwork)
	if err != nil {
		return 0
	}
	defer b.Close()
	return uplink.MTU - b.Overhead()
}

// cleanBackbones removes tunnels and routes to other nodes, of whichever mode.
func cleanBackbones() error {
	for _, name := range cniall.BackboneNames() {
		b, err := cniall.NewBackbone(name)
		if err != nil {
			return err
		}
		if err := b.Cleanup(); err != nil {
			_ = b.Close()
			return err
		}
		if err := b.Close(); err != nil {
			return err
		}
	}
	return nil
}
