package app

import (
	"context"
	"strings"
	"time"

	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/journey"
)

// networkSteps is a network that tells the journeys of pods when they are attached.
type networkSteps struct {
	cni.Network
	worker *worker
}

// Add implements cni.Network.
func (n *networkSteps) Add(ctx context.Context, a cni.Attachment) (cni.Result, error) {
	start := time.Now()
	result, err := n.Network.Add(ctx, a)
	k := n.worker.kubelet.Load()
	if k == nil {
		return result, err // another kubelet's sandbox
	}
	pod, ok := k.Pod(a.PodNamespace, a.PodName)
	if !ok || string(pod.UID) != a.PodUID {
		return result, err
	}
	step := journey.Step("network", "attached to network "+n.Name(), "Pod", pod, start).On(n.worker.config.NodeName)
	if err != nil {
		step.Step = "cannot be attached to network " + n.Name()
		n.worker.record.Record(step.With("error", err.Error()))
		return result, err
	}
	addresses := make([]string, 0, len(result.Addresses))
	for _, p := range result.Addresses {
		addresses = append(addresses, p.Addr().String())
	}
	n.worker.record.Record(step.With("ip", strings.Join(addresses, ","), "interface", result.HostIf))
	return result, nil
}
