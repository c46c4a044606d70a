package nodeaffinity

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/periplus/periplus/scheduler"
)

// maxMemos is how many selectors are remembered.
const maxMemos = 64

// A memo remembers which nodes a selector matches. Pods share few selectors, and
// nodes rarely change their labels, so that almost every Filter call is one look-up.
type memo struct {
	selector map[string]string
	required *v1.NodeSelector
	affinity nodeaffinity.RequiredNodeAffinity
	verdicts []verdict // by NodeInfo.Index
}

type verdict uint8

const (
	unknown verdict = iota
	match
	noMatch
)

func (m *memo) matches(n *scheduler.NodeInfo) bool {
	if n.Index < len(m.verdicts) {
		if v := m.verdicts[n.Index]; v != unknown {
			return v == match
		}
	}
	// As upstream does, a term that cannot be parsed does not match.
	ok, _ := m.affinity.Match(n.Node)
	if n.Index < len(m.verdicts) {
		if m.verdicts[n.Index] = noMatch; ok {
			m.verdicts[n.Index] = match
		}
	}
	return ok
}

// memos are those of the current epoch, the last used first.
type memos struct {
	epoch uint64
	list  []*memo
}

func (ms *memos) get(pod *v1.Pod, s *scheduler.Snapshot) *memo {
	if ms.epoch != s.Epoch() {
		ms.epoch, ms.list = s.Epoch(), nil
	}
	required := requiredOf(pod)
	same := func(m *memo) bool {
		return maps.Equal(m.selector, pod.Spec.NodeSelector) &&
			(m.required == required || m.required != nil && required != nil && equality.Semantic.DeepEqual(m.required, required))
	}
	for i, m := range ms.list {
		if same(m) {
			copy(ms.list[1:i+1], ms.list[:i])
			ms.list[0] = m
			return m
		}
	}
	m := &memo{
		selector: pod.Spec.NodeSelector, required: required,
		affinity: nodeaffinity.GetRequiredNodeAffinity(pod),
		verdicts: make([]verdict, len(s.Nodes)),
	}
	if len(ms.list) < maxMemos {
		ms.list = append(ms.list, nil)
	}
	copy(ms.list[1:], ms.list)
	ms.list[0] = m
	return m
}
