package scheduler

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// How many nodes an Attempt shows in detail: all of a small cluster, the best of a big one.
const attemptNodes = 100

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
	Verdicts        []Verdict // best first, then rejected ones; at most 100
	Scorers         []string  // names of Verdict.Scores
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
			return *at, true
		}
	}
	return Attempt{}, false
}

// placeLocked returns the ring entry for p, emptied, with its verdicts' memory.
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
	*at = Attempt{Namespace: p.Pod.Namespace, Name: p.Pod.Name, UID: p.UID(), Time: time.Now()}
	return at
}

// chosen records a decision; nodes, scorers and board are nil when only one node fitted.
func (a *attempts) chosen(p *PodInfo, node string, d *Diagnosis, s *Snapshot, nodes []*NodeInfo, scorers []scorer, board *scoreboard) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.placeLocked(p)
	at.Node, at.Nodes, at.Feasible = node, len(s.Nodes), max(len(nodes), 1)
	if board == nil {
		at.Verdicts = append(at.Verdicts, Verdict{Node: node})
	} else {
		at.scores(node, nodes, scorers, board)
	}
	at.rejections(d, s)
}

// scores adds the best nodes with their scores.
func (at *Attempt) scores(chosen string, nodes []*NodeInfo, scorers []scorer, board *scoreboard) {
	for _, sc := range scorers {
		at.Scorers = append(at.Scorers, sc.name)
	}
	order := make([]int, 0, min(len(nodes), attemptNodes))
	if len(nodes) <= attemptNodes/2 {
		for i := range nodes {
			order = append(order, i)
		}
		slices.SortFunc(order, func(i, j int) int { return int(board.total[j] - board.total[i]) })
	} else {
		// Of a big cluster only the chosen node and one in each ten are kept: sorting
		// hundreds of nodes for every pod would cost more than the decision.
		for i := range nodes {
			if nodes[i].Node.Name == chosen || i%10 == 0 && len(order) < 10 {
				order = append(order, i)
			}
		}
	}
	all := make([]int64, len(order)*len(scorers))
	at.Verdicts = make([]Verdict, 0, len(order))
	for k, i := range order {
		v := Verdict{Node: nodes[i].Node.Name, Score: board.total[i], Scores: all[k*len(scorers) : (k+1)*len(scorers)]}
		for j := range scorers {
			v.Scores[j] = board.raw[j][i]
		}
		if v.Node == chosen {
			at.Score = v.Score
		}
		at.Verdicts = append(at.Verdicts, v)
	}
}

// rejections adds rejected nodes while there is room.
func (at *Attempt) rejections(d *Diagnosis, s *Snapshot) {
	for i, st := range d.Nodes {
		if len(at.Verdicts) >= attemptNodes {
			return
		}
		if st != nil {
			at.Verdicts = append(at.Verdicts, Verdict{Node: s.Nodes[i].Node.Name, Plugin: st.plugin, Reasons: st.reasons})
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
	if d.Nodes == nil && d.Absent != nil {
		for _, n := range s.Nodes[:min(len(s.Nodes), attemptNodes)] {
			at.Verdicts = append(at.Verdicts, Verdict{Node: n.Node.Name, Plugin: d.Absent.plugin, Reasons: d.Absent.reasons})
		}
	}
	at.rejections(d, s)
}
