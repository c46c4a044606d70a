package scheduler

import v1 "k8s.io/api/core/v1"

// For tests from outside the package.

func (s *Scheduler) AddNode(n *v1.Node)       { s.nodeAdded(n) }
func (s *Scheduler) AddPod(p *v1.Pod)         { s.podAdded(p) }
func (s *Scheduler) UpdatePod(old, p *v1.Pod) { s.podUpdated(old, p) }
func (s *Scheduler) InFlight() int {
	s.queue.mu.Lock()
	defer s.queue.mu.Unlock()
	return len(s.queue.flight.marks) + s.queue.flight.order.Len()
}
