package scheduler

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/journey"
)

// Simulate returns a framework over a fixed set of nodes and of pods bound to them,
// without client and informers: for tests of plug-ins and for questions like "would it fit".
func Simulate(p Profile, nodes []*v1.Node, pods []*v1.Pod) (*Framework, error) {
	f := &Framework{
		Name: p.SchedulerName, Resources: NewResourceTable(), Recorder: noEvents{}, Journey: journey.Discard,
		snapshot: &Snapshot{}, held: &held{}, percent: p.PercentageOfNodesToScore,
	}
	f.Cache = NewCache(f.Resources)
	for _, n := range nodes {
		f.Cache.SetNode(n)
	}
	for _, pod := range pods {
		f.Cache.SetPod(pod)
	}
	f.Cache.Update(f.snapshot)
	if err := f.build(p); err != nil {
		return nil, err
	}
	return f, nil
}

// A Trial is the outcome of Framework.Try.
type Trial struct {
	Verdicts map[string]*Status // by node; nil for nodes that fit
	Rejected *Status            // of the pod as a whole
	Scores   map[string]int64   // by node that fits
}

// Try filters and scores all nodes for a pod, without deciding.
func (f *Framework) Try(ctx context.Context, pod *v1.Pod) (Trial, error) {
	t := Trial{Verdicts: map[string]*Status{}, Scores: map[string]int64{}}
	p := NewPodInfo(pod, f.Resources)
	state := f.NewState()
	var d Diagnosis
	names, st := f.RunPreFilter(ctx, state, p, &d)
	if !st.IsSuccess() {
		t.Rejected = st
		if !st.IsRejected() {
			return t, st.Err()
		}
		return t, nil
	}
	var fits []*NodeInfo
	for _, n := range f.snapshot.Nodes {
		if names != nil && !names.Has(n.Node.Name) {
			t.Verdicts[n.Node.Name] = d.Absent
			continue
		}
		st := f.RunFilterWithNominated(state, p, n)
		if t.Verdicts[n.Node.Name] = st; st.IsSuccess() {
			fits = append(fits, n)
		} else if !st.IsRejected() {
			return t, st.Err()
		}
	}
	if len(fits) == 0 {
		return t, nil
	}
	var board scoreboard
	if st := board.run(ctx, f, state, p, fits); !st.IsSuccess() {
		return t, st.Err()
	}
	for i, n := range fits {
		t.Scores[n.Node.Name] = board.total[i]
	}
	return t, nil
}
