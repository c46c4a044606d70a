package podcgroup

import (
	"errors"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Limit bounds all pods together: their share of the processors in millicores,
// their memory in bytes; 0 is no bound. It takes effect with the next pod.
func (t *Tree) Limit(milliCPU, memory int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.node, t.prepared = limits{memory: memory}, false
	if milliCPU > 0 {
		t.node.shares = Shares(milliCPU)
	}
}

// LimitPids bounds the processes of each pod; 0 or less is no bound. It takes effect
// with the next pod.
func (t *Tree) LimitPids(most int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pids = max(0, most)
}

// shareOut keeps the processors' division among the classes: BestEffort gets what
// is left over, Burstable what its pods requested together.
func (t *Tree) shareOut(pod *corev1.Pod) error {
	kubepods := filepath.Join(t.root, "kubepods")
	if !t.prepared {
		// Told once if it cannot be done, as when more memory is in use: pods run all the same.
		t.prepared = true
		err := t.mkdirAll(filepath.Join(kubepods, "besteffort"), filepath.Join(kubepods, "burstable"))
		if err == nil {
			err = errors.Join(t.limit(kubepods, t.node), t.limit(filepath.Join(kubepods, "besteffort"), limits{shares: minShares}))
		}
		if err != nil {
			return err
		}
	}
	if pod != nil && QOS(pod) == corev1.PodQOSBurstable {
		requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		t.requests[pod.UID] = requests.Cpu().MilliValue()
	}
	var sum int64
	for _, milli := range t.requests {
		sum += milli
	}
	shares := Shares(sum)
	if shares == t.burstable {
		return nil
	}
	if err := t.limit(filepath.Join(kubepods, "burstable"), limits{shares: shares}); err != nil {
		return err
	}
	t.burstable = shares
	return nil
}
