package defaultbinder

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/scheduler"
)

// Name is the plug-in's name.
const Name = "DefaultBinder"

type plugin struct{ f *scheduler.Framework }

var _ scheduler.BindPlugin = plugin{}

// New makes the plug-in.
func New(f *scheduler.Framework) (scheduler.Plugin, error) { return plugin{f}, nil }

func (plugin) Name() string { return Name }

func (pl plugin) Bind(ctx context.Context, _ *scheduler.CycleState, p *scheduler.PodInfo, node string) *scheduler.Status {
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.Pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := pl.f.Client.CoreV1().Pods(p.Pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return scheduler.ErrorStatus(Name, fmt.Errorf("bind pod %s/%s to node %s: %w", p.Pod.Namespace, p.Pod.Name, node, err))
	}
	return nil
}
