package flow

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A table is written as upstream writes its own: cells end with a comma and are in line.
type table struct{ out *tabwriter.Writer }

func newTable(w io.Writer, head ...string) *table {
	t := &table{tabwriter.NewWriter(w, 8, 0, 1, ' ', 0)}
	t.row(head...)
	return t
}

func (t *table) row(cells ...string) { fmt.Fprintln(t.out, strings.Join(cells, ",\t")) }

// flush writes the table; an error means that the client has gone.
func (t *table) flush() { _ = t.out.Flush() }

// Dump writes a table of the levels, as upstream's dump_priority_levels does.
func (c *Control) Dump(w io.Writer) {
	t := newTable(w, "PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests", "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests")
	defer t.flush()
	c.current()
	d := &c.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.order {
		active := 0
		for _, q := range l.queues {
			if len(q.waiters) > 0 {
				active++
			}
		}
		var sum tally
		for _, of := range l.tallies {
			sum.dispatched += of.dispatched
			sum.full += of.full
			sum.late += of.late
			sum.cancelled += of.cancelled
		}
		t.row(l.name, strconv.Itoa(active), strconv.FormatBool(l.running == 0 && l.waiting == 0), strconv.FormatBool(l.gone), strconv.Itoa(l.waiting), strconv.Itoa(l.running),
			strconv.FormatInt(sum.dispatched, 10), strconv.FormatInt(sum.full, 10), strconv.FormatInt(sum.late, 10), strconv.FormatInt(sum.cancelled, 10))
	}
}

// DumpQueues writes a table of all queues, as upstream's dump_queues does.
func (c *Control) DumpQueues(w io.Writer) {
	t := newTable(w, "PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR", "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum")
	defer t.flush()
	c.current()
	d := &c.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.order {
		inUse := map[*queue]int{}
		for ticket := l.first; ticket != nil; ticket = ticket.next {
			inUse[ticket.queue] += ticket.width
		}
		for i, q := range l.queues {
			initial, most, work := 0, 0, 0.0
			for _, ticket := range q.waiters {
				initial += ticket.cost.seats
				most += ticket.width
				work += float64(ticket.width) * guess
			}
			t.row(l.name, strconv.Itoa(i), strconv.Itoa(len(q.waiters)), strconv.Itoa(q.running), strconv.Itoa(inUse[q]), fmt.Sprintf("%.8fss", q.virtual),
				strconv.Itoa(initial), strconv.Itoa(most), fmt.Sprintf("%.8fss", work))
		}
	}
}

// DumpRequests writes a table of all requests that wait or are served, as upstream's
// dump_requests does.
func (c *Control) DumpRequests(w io.Writer, details bool) {
	head := []string{"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"}
	if details {
		head = append(head, "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
	}
	t := newTable(w, head...)
	defer t.flush()
	now := c.current()
	schemas := map[string]*rule{}
	for i := range now.schemas {
		schemas[now.schemas[i].Name] = &now.schemas[i]
	}
	d := &c.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	one := func(l *level, of *Ticket, queue, index int) {
		flow := ""
		if s := schemas[of.tally.schema]; s != nil {
			flow = distinguisher(s.FlowSchema, of.state)
		}
		begun := time.Time{}
		if index < 0 {
			begun = of.begun
		}
		cells := []string{l.name, of.tally.schema, strconv.Itoa(queue), strconv.Itoa(index), flow, of.came.UTC().Format(time.RFC3339Nano),
			strconv.Itoa(of.cost.seats), strconv.Itoa(of.cost.after), of.cost.lasts.String(), begun.UTC().Format(time.RFC3339Nano)}
		if details {
			i := &of.state.Info
			cells = append(cells, of.state.User.GetName(), i.Verb, i.Path, i.Namespace, i.Name, schema.GroupVersion{Group: i.Group, Version: i.Version}.String(), i.Resource, i.Subresource)
		}
		t.row(cells...)
	}
	for _, l := range d.order {
		served := make([]*Ticket, 0, l.running)
		for ticket := l.first; ticket != nil; ticket = ticket.next {
			served = append(served, ticket)
		}
		slices.SortFunc(served, func(a, b *Ticket) int { return cmp.Compare(a.begun.UnixNano(), b.begun.UnixNano()) })
		for i, q := range l.queues {
			for j, ticket := range q.waiters {
				one(l, ticket, i, j)
			}
		}
		for _, ticket := range served {
			one(l, ticket, slices.Index(l.queues, ticket.queue), -1)
		}
	}
}
