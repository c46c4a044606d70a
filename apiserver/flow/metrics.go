package flow

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/periplus/periplus/base/metric"
)

// collector reads the levels when somebody wants to know.
func (c *Control) collector(s *metric.Set) prometheus.Collector {
	of := []string{"priority_level", "flow_schema"}
	level := of[:1:1]
	define := func(l metric.Level, kind, name, help string, labels ...string) *prometheus.Desc {
		return s.Desc(l, kind, "apiserver_flowcontrol_"+name, help, labels...)
	}
	inQueue := define(metric.Beta, "gauge", "current_inqueue_requests", "Number of requests currently pending in queues of the API Priority and Fairness subsystem", of...)
	inQueueSeats := define(metric.Alpha, "gauge", "current_inqueue_seats", "Number of seats currently pending in queues of the API Priority and Fairness subsystem", of...)
	executing := define(metric.Beta, "gauge", "current_executing_requests", "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem", of...)
	seats := define(metric.Beta, "gauge", "current_executing_seats", "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage otherwise) requests in the API Priority and Fairness subsystem", of...)
	dispatched := define(metric.Beta, "counter", "dispatched_requests_total", "Number of requests executed by API Priority and Fairness subsystem", of...)
	rejected := define(metric.Beta, "counter", "rejected_requests_total", "Number of requests rejected by API Priority and Fairness subsystem", append(of[:2:2], "reason")...)
	unseated := define(metric.Alpha, "counter", "request_dispatch_no_accommodation_total", "Number of times a dispatch attempt resulted in a non accommodation due to lack of available seats", of...)
	nominal := define(metric.Beta, "gauge", "nominal_limit_seats", "Nominal number of execution seats configured for each priority level", level...)
	lower := define(metric.Alpha, "gauge", "lower_limit_seats", "Configured lower bound on number of execution seats available to each priority level", level...)
	upper := define(metric.Alpha, "gauge", "upper_limit_seats", "Configured upper bound on number of execution seats available to each priority level", level...)
	current := define(metric.Alpha, "gauge", "current_limit_seats", "current derived number of execution seats available to each priority level", level...)
	return &metric.Reading{
		Descs: []*prometheus.Desc{inQueue, inQueueSeats, executing, seats, dispatched, rejected, unseated, nominal, lower, upper, current},
		Read: func(out chan<- prometheus.Metric) {
			for _, l := range c.states() {
				metric.Show(out, nominal, float64(l.nominal), l.name)
				metric.Show(out, lower, float64(l.nominal-l.lend), l.name)
				metric.Show(out, upper, float64(l.upper(c.Seats)), l.name)
				metric.Show(out, current, float64(l.nominal-l.lent+l.borrowed), l.name)
				for _, t := range l.counted {
					show := func(d *prometheus.Desc, v int) { metric.Show(out, d, float64(v), l.name, t.schema) }
					show(inQueue, t.waiting)
					show(inQueueSeats, t.waitingSeats)
					show(executing, t.running)
					show(seats, t.seats)
					metric.Count(out, dispatched, float64(t.dispatched), l.name, t.schema)
					if t.unseated > 0 {
						metric.Count(out, unseated, float64(t.unseated), l.name, t.schema)
					}
					for reason, n := range map[string]int64{"queue-full": t.full, "time-out": t.late, "cancelled": t.cancelled} {
						if n > 0 {
							metric.Count(out, rejected, float64(n), l.name, t.schema, reason)
						}
					}
				}
			}
		},
	}
}

// A state is a copy of a level, without its queues.
type state struct {
	level
	counted []tally
}

// upper is how many seats a level may have at most.
func (l *level) upper(seats int) int {
	if l.borrow < 0 {
		return seats
	}
	return l.nominal + l.borrow
}

// states is a copy of the levels.
func (c *Control) states() []state {
	c.current()
	d := &c.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]state, len(d.order))
	for i, l := range d.order {
		out[i].level = *l
		for _, t := range l.tallies {
			out[i].counted = append(out[i].counted, *t)
		}
	}
	return out
}
