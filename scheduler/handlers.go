package scheduler

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// watch adds the handlers. They run in the informers' goroutines and go straight to
// the cache and the queue: the cache first, so that a pod that an event brings back
// finds the change that brought it back.
func (s *Scheduler) watch() error {
	core := s.config.Informers.Core().V1()
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandlerFuncs
	}{
		{core.Nodes().Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.nodeAdded(o.(*v1.Node)) },
			UpdateFunc: func(o, n any) { s.nodeUpdated(o.(*v1.Node), n.(*v1.Node)) },
			DeleteFunc: func(o any) { s.nodeDeleted(last[*v1.Node](o)) },
		}},
		{core.Pods().Informer(), cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.podAdded(o.(*v1.Pod)) },
			UpdateFunc: func(o, n any) { s.podUpdated(o.(*v1.Pod), n.(*v1.Pod)) },
			DeleteFunc: func(o any) { s.podDeleted(last[*v1.Pod](o)) },
		}},
	} {
		registration, err := w.informer.AddEventHandler(w.handler)
		if err != nil {
			return fmt.Errorf("scheduler: watch: %w", err)
		}
		s.needs = append(s.needs, registration)
	}
	return nil
}

// last returns the object of a deletion, also when the informer missed it.
func last[T any](o any) T {
	if tomb, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tomb.Obj
	}
	t, _ := o.(T)
	return t
}

func (s *Scheduler) nodeAdded(node *v1.Node) {
	s.cache.SetNode(node)
	s.queue.Event(ClusterEvent{Node, Add}, nil, node)
}

func (s *Scheduler) nodeUpdated(old, node *v1.Node) {
	s.cache.SetNode(node)
	if a := nodeActions(old, node); a != 0 {
		s.queue.Event(ClusterEvent{Node, a}, old, node)
	}
}

func (s *Scheduler) nodeDeleted(node *v1.Node) {
	if node == nil {
		return
	}
	s.cache.RemoveNode(node)
	s.queue.Event(ClusterEvent{Node, Delete}, node, nil)
}

func terminal(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

func (s *Scheduler) podAdded(pod *v1.Pod) {
	switch {
	case terminal(pod):
	case pod.Spec.NodeName != "":
		s.podAssigned(nil, pod)
	case s.profiles[pod.Spec.SchedulerName] != nil:
		s.podPending(nil, pod)
	}
}

func (s *Scheduler) podUpdated(old, pod *v1.Pod) {
	if old.ResourceVersion == pod.ResourceVersion && old.UID == pod.UID {
		return // a resync
	}
	if old.UID != pod.UID {
		// The informer missed the deletion of a pod with the same name.
		s.podDeleted(old)
		s.podAdded(pod)
		return
	}
	switch {
	case terminal(pod):
		if !terminal(old) {
			s.podDeleted(pod)
		}
	case pod.Spec.NodeName != "":
		s.podAssigned(old, pod)
	case s.profiles[pod.Spec.SchedulerName] != nil:
		s.podPending(old, pod)
	}
}

// podAssigned takes a pod that has a node: a new one, a confirmed binding or an update.
func (s *Scheduler) podAssigned(old, pod *v1.Pod) {
	before := s.cache.SetPod(pod)
	if old == nil || old.Spec.NodeName == "" {
		s.queue.Delete(pod.UID) // somebody else may have bound it
		if f := s.profiles[pod.Spec.SchedulerName]; f != nil {
			if h := f.held.get(pod.UID); h != nil {
				h.Reject("", "pod was bound by another scheduler")
			}
		}
		s.queue.Event(ClusterEvent{AssignedPod, Add}, nil, pod)
		return
	}
	if before == nil {
		s.queue.Event(ClusterEvent{AssignedPod, Add}, nil, pod)
		return
	}
	s.queue.Event(ClusterEvent{AssignedPod, podActions(s.table, old, pod)}, old, pod)
}

func (s *Scheduler) podPending(old, pod *v1.Pod) {
	if s.cache.IsAssumed(pod.UID) {
		return // its binding is under way
	}
	info := NewPodInfo(pod, s.table)
	s.queue.Nominate(info, pod.Status.NominatedNodeName)
	if old == nil {
		s.queue.Add(info)
		return
	}
	actions := podActions(s.table, old, pod)
	s.queue.Update(old, info, actions)
	// Others may wait for what changed, for example a label.
	s.queue.Event(ClusterEvent{PendingPod, actions}, old, pod)
}

// podDeleted takes a pod that was deleted or has ended.
func (s *Scheduler) podDeleted(pod *v1.Pod) {
	if pod == nil {
		return
	}
	nominated := len(s.queue.NominatedPods(pod.Status.NominatedNodeName)) > 0 && pod.Spec.NodeName == ""
	s.queue.Delete(pod.UID)
	s.writer.Forget(pod.UID)
	if f := s.profiles[pod.Spec.SchedulerName]; f != nil {
		if h := f.held.get(pod.UID); h != nil {
			h.Reject("", "pod was deleted")
		}
	}
	if old := s.cache.RemovePod(pod.UID); old != nil {
		s.queue.Event(ClusterEvent{AssignedPod, Delete}, old.Pod, nil)
	} else if nominated {
		s.queue.Event(ClusterEvent{AssignedPod, Delete}, pod, nil)
	} else if pod.Spec.NodeName == "" {
		s.queue.Event(ClusterEvent{PendingPod, Delete}, pod, nil)
	}
}
