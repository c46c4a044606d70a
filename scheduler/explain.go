package scheduler

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// attemptNodes is how many nodes an Attempt shows: all of a small cluster.
	attemptNodes = 100
	// sampleNodes is how many of those that fit, and of those that do not, are shown of a
	// bigger cluster when the pod found a node: describing hundreds of nodes for every
	// pod would cost more than deciding.
	sampleNodes = 10
)

// An Attempt says what the scheduler thought of each node in a pod's last attempt.
type Attempt struct {
	Namespace, Name string
	UID             types.UID
	Time            time.Time
	Node            string    // the chosen one, "" when none fitted
	Nodes           int       // in the cluster
	Feasible        int       // nodes that passed the filters before the search ended
	Repeated        bool      // decided with the scores of an equal pod before it
	Score           int64     // of the chosen node
	Message         string    // why no node fitted
	Verdicts        []Verdict // best first, then rejected ones; at most 100 in all
	Scorers         []string  // names of Verdict.Scores

	scores []int64 // memory of Verdict.Scores
}

// A Verdict is one node in an Attempt.
type Verdict struct {
	Node    string
	Plugin  string   // that rejected it
	Reasons []string // of the rejection
	Score   int64    // sum of Scores
	Scores  []int64  // weighted, by Attempt.Scorers
}

// attempts is a ring of the last attempts, one a pod.
type attempts struct {
	mu    sync.Mutex
	ring  []Attempt         // guarded by mu
	next  int               // guarded by mu
	index map[types.UID]int // guarded by mu
}

func newAttempts(n int) *attempts {
	return &attempts{ring: make([]Attempt, n), index: make(map[types.UID]int, n)}
}

// Explain returns the last attempt of a pod, if it is still remembered.
func (s *Scheduler) Explain(namespace, name string) (Attempt, bool) {
	a := s.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.ring { // newest first
		at := &a.ring[(a.next-1-i+2*len(a.ring))%len(a.ring)]
		if at.Namespace == namespace && at.Name == name {
			return at.clone(), true
		}
	}
	return Attempt{}, false
}

// clone returns a copy that stays as it is when the ring entry is used again.
func (at *Attempt) clone() Attempt {
	c := *at
	c.scores = nil
	c.Scorers = slices.Clone(at.Scorers)
	c.Verdicts = slices.Clone(at.Verdicts)
	for i := range c.Verdicts {
		c.Verdicts[i].Scores = slices.Clone(c.Verdicts[i].Scores)
	}
	return c
}

// placeLocked returns the ring entry for p, emptied, with its memory.
func (a *attempts) placeLocked(p *PodInfo) *Attempt {
	i, ok := a.index[p.UID()]
	if !ok {
		i = a.next
		a.next = (a.next + 1) % len(a.ring)
		if old := a.ring[i].UID; old != "" {
			delete(a.index, old)
		}
		a.index[p.UID()] = i
	}
	at := &a.ring[i]
	*at = Attempt{
		Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.UID(), Time: time.Now(),
		Verdicts: at.Verdicts[:0], Scorers: at.Scorers[:0], scores: at.scores[:0],
	}
	return at
}

// chosen records the decision for nodes[best]; scorers and board are nil when only
// one node fitted.
func (a *attempts) chosen(p *PodInfo, d *Diagnosis, s *Snapshot, nodes []*NodeInfo, best int, scorers []scorer, board *scoreboard) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.placeLocked(p)
	at.Node, at.Nodes, at.Feasible = nodes[best].Node.Name, len(s.Nodes), len(nodes)
	small := len(s.Nodes) <= attemptNodes
	if board == nil {
		at.Verdicts = append(at.Verdicts, Verdict{Node: at.Node})
	} else {
		for _, sc := range scorers {
			at.Scorers = append(at.Scorers, sc.name)
		}
		shown := nodes
		if !small {
			shown = nodes[:min(sampleNodes, len(nodes))]
		}
		at.scores = resize(at.scores, (len(shown)+1)*len(scorers))
		at.Score = board.total[best]
		if best >= len(shown) {
			at.score(nodes, best, scorers, board)
		}
		for i := range shown {
			at.score(nodes, i, scorers, board)
		}
		slices.SortStableFunc(at.Verdicts, func(x, y Verdict) int { return int(y.Score - x.Score) })
	}
	room := attemptNodes - len(at.Verdicts)
	if !small {
		room = sampleNodes
	}
	at.rejections(d, s, room)
}

// score adds node i with its scores.
func (at *Attempt) score(nodes []*NodeInfo, i int, scorers []scorer, board *scoreboard) {
	n, k := len(scorers), len(at.Verdicts)
	v := Verdict{Node: nodes[i].Node.Name, Score: board.total[i], Scores: at.scores[k*n : (k+1)*n]}
	for j := range scorers {
		v.Scores[j] = board.raw[j][i]
	}
	at.Verdicts = append(at.Verdicts, v)
}

// rejections adds up to room rejected nodes.
func (at *Attempt) rejections(d *Diagnosis, s *Snapshot, room int) {
	for i, st := range d.Nodes {
		if room <= 0 {
			return
		}
		if st != nil {
			at.Verdicts = append(at.Verdicts, Verdict{Node: s.Nodes[i].Node.Name, Plugin: st.plugin, Reasons: st.reasons})
			room--
		}
	}
}

func (a *attempts) repeated(p *PodInfo, node string, score int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.placeLocked(p)
	at.Node, at.Score, at.Repeated = node, score, true
}

func (a *attempts) rejected(p *PodInfo, d *Diagnosis, s *Snapshot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.placeLocked(p)
	at.Nodes = len(s.Nodes)
	at.Message = (&FitError{NumNodes: len(s.Nodes), Diagnosis: *d}).Error()
	at.rejections(d, s, attemptNodes)
	if len(at.Verdicts) == 0 && d.Absent != nil {
		for _, n := range s.Nodes[:min(len(s.Nodes), attemptNodes)] {
			at.Verdicts = append(at.Verdicts, Verdict{Node: n.Node.Name, Plugin: d.Absent.plugin, Reasons: d.Absent.reasons})
		}
	}
}
