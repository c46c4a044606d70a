package flow

import (
	"math"
	"net/http"
	"strconv"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/periplus/periplus/apiserver/request"
)

// What requests are taken to cost, as upstream estimates it.
const (
	// bytesPerSeat is how much of a list is the work of one seat.
	bytesPerSeat = 100_000
	// streamed is how much of a list from the cache is in memory at once, at most.
	streamed = 1_000_000
	// mostOfList and mostOfWrite are how many seats one request takes at most.
	mostOfList  = 100
	mostOfWrite = 10
	// watchersPerSeat is how many watchers of a write are the work of one seat for eventWork.
	watchersPerSeat = 10
	eventWork       = 5 * time.Millisecond
	// mostOfLevel is how much of a level's seats one request takes at most.
	mostOfLevel = 0.15
)

// A cost is what a request takes: seats while it is served, and seats for a while after
// that, in which others are told of what it has changed.
type cost struct {
	seats, after int
	lasts        time.Duration
	watchers     int // who is told; -1: it changes nothing
}

// width is how many seats a request holds while it is served.
func (c *cost) width() int { return max(c.seats, c.after) }

// widest is how many seats of a level one request may take.
func widest(l *flowcontrolv1.PriorityLevelConfiguration, nominal int) int {
	hand := 1
	if l.Spec.Limited != nil && l.Spec.Limited.LimitResponse.Queuing != nil {
		hand = max(1, int(l.Spec.Limited.LimitResponse.Queuing.HandSize))
	}
	return max(1, min(int(math.Ceil(float64(nominal)*mostOfLevel)), nominal/hand))
}

// estimate is what a request costs: a list by how much it may bring, a write by how many
// watch what it changes.
func (c *Control) estimate(r *http.Request, s *request.State, most int) cost {
	i := &s.Info
	switch {
	case !i.IsResource:
		return cost{seats: 1, watchers: -1}
	case i.Verb == "list" || i.Verb == "watch":
		return cost{seats: max(1, min(c.length(r, i), most, mostOfList)), watchers: -1}
	case i.Verb == "get", i.Resource == "serviceaccounts" && i.Subresource == "token":
		return cost{seats: 1, watchers: -1}
	}
	out := cost{seats: 1, watchers: c.watchers.interested(i)}
	if out.watchers >= watchersPerSeat {
		wide := (out.watchers + watchersPerSeat - 1) / watchersPerSeat
		out.after = min(wide, most, mostOfWrite)
		out.lasts = time.Duration(wide) * eventWork / time.Duration(out.after)
	}
	return out
}

// length is how many seats a list takes by its size, or the beginning of a watch.
func (c *Control) length(r *http.Request, i *request.Info) int {
	if i.Name != "" {
		return 1
	}
	limit, past := 0, false
	if r.URL.RawQuery != "" {
		q := r.URL.Query()
		if i.Verb == "watch" && q.Get("sendInitialEvents") != "true" && q.Get("resourceVersion") != "" && q.Get("resourceVersion") != "0" {
			return 1
		}
		limit, _ = strconv.Atoi(q.Get("limit"))
		past = i.Verb == "list" && (q.Get("continue") != "" || q.Get("resourceVersionMatch") == "Exact")
	}
	objects, bytes := c.objects.Size(i.GVR())
	if objects == 0 {
		return 1
	}
	n := bytes
	if limit > 0 && limit < objects {
		n = bytes / objects * limit
	}
	if !past {
		n = min(n, streamed)
	}
	return (n + bytesPerSeat - 1) / bytesPerSeat
}
