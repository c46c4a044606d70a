package queuesort

import "github.com/periplus/periplus/scheduler"

// Name is the plug-in's name.
const Name = "PrioritySort"

type plugin struct{}

var _ scheduler.QueueSortPlugin = plugin{}

// New makes the plug-in.
func New(*scheduler.Framework) (scheduler.Plugin, error) { return plugin{}, nil }

func (plugin) Name() string { return Name }

func (plugin) Less(a, b *scheduler.QueuedPod) bool {
	if a.Info.Priority != b.Info.Priority {
		return a.Info.Priority > b.Info.Priority
	}
	return a.Timestamp.Before(b.Timestamp)
}
