package flow

import (
	"fmt"
	"io"

	"github.com/prometheus/client_golang/prometheus"
)

var byLevel = []string{"priority_level"}

var (
	inQueue    = prometheus.NewDesc("apiserver_flowcontrol_current_inqueue_requests", "Number of requests currently pending in queues of the API Priority and Fairness subsystem", byLevel, nil)
	executing  = prometheus.NewDesc("apiserver_flowcontrol_current_executing_requests", "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and Fairness subsystem", byLevel, nil)
	seatsInUse = prometheus.NewDesc("apiserver_flowcontrol_current_executing_seats", "Concurrency (number of seats) occupied by the currently executing requests in the API Priority and Fairness subsystem", byLevel, nil)
	nominal    = prometheus.NewDesc("apiserver_flowcontrol_nominal_limit_seats", "Nominal number of execution seats configured for each priority level", byLevel, nil)
	current    = prometheus.NewDesc("apiserver_flowcontrol_current_limit_seats", "current derived number of execution seats available to each priority level", byLevel, nil)
	dispatched = prometheus.NewDesc("apiserver_flowcontrol_dispatched_requests_total", "Number of requests executed by API Priority and Fairness subsystem", byLevel, nil)
	rejected   = prometheus.NewDesc("apiserver_flowcontrol_rejected_requests_total", "Number of requests rejected by API Priority and Fairness subsystem", []string{"priority_level", "reason"}, nil)
)

var _ prometheus.Collector = (*Control)(nil)

// Describe implements prometheus.Collector.
func (c *Control) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inQueue, executing, seatsInUse, nominal, current, dispatched, rejected} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Control) Collect(out chan<- prometheus.Metric) {
	for _, l := range c.states() {
		gauge := func(d *prometheus.Desc, v int) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), l.name)
		}
		count := func(d *prometheus.Desc, v int64, labels ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
		}
		gauge(inQueue, l.waiting)
		gauge(executing, l.running)
		gauge(seatsInUse, l.used)
		gauge(nominal, l.nominal)
		gauge(current, l.nominal-l.lent+l.borrowed)
		count(dispatched, l.dispatched, l.name)
		count(rejected, l.full, l.name, "queue-full")
		count(rejected, l.late, l.name, "time-out")
		count(rejected, l.cancelled, l.name, "cancelled")
	}
}

// states is a copy of the levels.
func (c *Control) states() []level {
	c.current()
	d := &c.dispatcher
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]level, len(d.order))
	for i, l := range d.order {
		out[i] = *l
	}
	return out
}

// Dump writes a table of the levels, as upstream's dump_priority_levels does.
func (c *Control) Dump(w io.Writer) {
	fmt.Fprintln(w, "PriorityLevelName, ActiveQueues, IsIdle, IsQuiescing, WaitingRequests, ExecutingRequests, DispatchedRequests, RejectedRequests, TimedoutRequests, CancelledRequests")
	for _, l := range c.states() {
		if l.exempt {
			fmt.Fprintf(w, "%s, <none>, <none>, <none>, <none>, <none>, <none>, <none>, <none>, <none>\n", l.name)
			continue
		}
		active := 0
		for i := range l.queues {
			if len(l.queues[i].waiters) > 0 {
				active++
			}
		}
		fmt.Fprintf(w, "%s, %d, %t, %t, %d, %d, %d, %d, %d, %d\n", l.name, active, l.running == 0 && l.waiting == 0, l.gone, l.waiting, l.running, l.dispatched, l.full, l.late, l.cancelled)
	}
}
