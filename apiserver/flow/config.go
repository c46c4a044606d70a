package flow

import (
	"cmp"
	"math"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/request"
)

// compiled is the objects in the form in which requests are looked up.
type compiled struct {
	schemas []rule // in the order in which they are asked
	levels  map[string]*flowcontrolv1.PriorityLevelConfiguration
	of      [2]int64 // versions of the objects that it was made of
}

// A rule is a schema, and what is told of it.
type rule struct {
	*flowcontrolv1.FlowSchema
	uids   [2][]string // values of the headers that tell of it: its own, its level's
	widest int         // seats that one request may take
}

// compile reads the objects. The mandatory ones are there even if they are not
// stored, and all others that upstream suggests until the first are.
func compile(schemas, levels []runtime.Object) *compiled {
	c := &compiled{levels: map[string]*flowcontrolv1.PriorityLevelConfiguration{}}
	names := map[string]bool{}
	add := func(s *flowcontrolv1.FlowSchema) {
		if !names[s.Name] {
			names[s.Name] = true
			c.schemas = append(c.schemas, rule{FlowSchema: s})
		}
	}
	for _, obj := range levels {
		l := obj.(*flowcontrolv1.PriorityLevelConfiguration)
		c.levels[l.Name] = l
	}
	for _, obj := range schemas {
		add(obj.(*flowcontrolv1.FlowSchema))
	}
	wantedSchemas, wantedLevels := bootstrap.MandatoryFlowSchemas, bootstrap.MandatoryPriorityLevelConfigurations
	if len(schemas) == 0 || len(levels) == 0 {
		wantedSchemas = slices.Concat(wantedSchemas, bootstrap.SuggestedFlowSchemas)
		wantedLevels = slices.Concat(wantedLevels, bootstrap.SuggestedPriorityLevelConfigurations)
	}
	for _, l := range wantedLevels {
		if c.levels[l.Name] == nil {
			c.levels[l.Name] = l
		}
	}
	for _, s := range wantedSchemas {
		add(s)
	}
	// What refers to no level is not asked.
	c.schemas = slices.DeleteFunc(c.schemas, func(s rule) bool { return c.levels[s.Spec.PriorityLevelConfiguration.Name] == nil })
	for i := range c.schemas {
		s := &c.schemas[i]
		s.uids = [2][]string{{string(s.UID)}, {string(c.levels[s.Spec.PriorityLevelConfiguration.Name].UID)}}
	}
	slices.SortFunc(c.schemas, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.Spec.MatchingPrecedence, b.Spec.MatchingPrecedence), strings.Compare(a.Name, b.Name))
	})
	return c
}

// find returns the first schema that is about a request. The last one takes everybody.
func (c *compiled) find(u user.Info, i *request.Info) *rule {
	for j := range c.schemas {
		if s := &c.schemas[j]; matches(s.FlowSchema, u, i) {
			return s
		}
	}
	return nil
}

// arrange brings the dispatcher's levels in line with the objects. seats are the server's.
func (d *dispatcher) arrange(c *compiled, seats int) {
	total := 0
	for _, l := range c.levels {
		total += shares(l)
	}
	nominal := func(l *flowcontrolv1.PriorityLevelConfiguration) int {
		return int(math.Ceil(float64(seats) * float64(shares(l)) / float64(max(1, total))))
	}
	for i := range c.schemas {
		l := c.levels[c.schemas[i].Spec.PriorityLevelConfiguration.Name]
		c.schemas[i].widest = widest(l, nominal(l))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.levels == nil {
		d.levels = map[string]*level{}
	}
	for name, object := range c.levels {
		l := d.levels[name]
		if l == nil {
			l = &level{name: name, tallies: map[string]*tally{}}
			d.levels[name] = l
		}
		l.gone = false
		l.arrange(object, nominal(object))
	}
	for name, l := range d.levels {
		if c.levels[name] == nil {
			if l.gone = true; l.used == 0 && l.waiting == 0 && l.lent == 0 {
				delete(d.levels, name)
			}
		}
	}
	d.order = d.order[:0:0]
	for _, l := range d.levels {
		d.order = append(d.order, l)
	}
	slices.SortFunc(d.order, func(a, b *level) int { return strings.Compare(a.name, b.name) })
	for _, l := range d.order {
		d.nextLocked(l)
	}
}

func shares(l *flowcontrolv1.PriorityLevelConfiguration) int {
	switch {
	case l.Spec.Limited != nil && l.Spec.Limited.NominalConcurrencyShares != nil:
		return int(*l.Spec.Limited.NominalConcurrencyShares)
	case l.Spec.Limited != nil:
		return 30 // as it is filled in
	case l.Spec.Exempt != nil && l.Spec.Exempt.NominalConcurrencyShares != nil:
		return int(*l.Spec.Exempt.NominalConcurrencyShares)
	}
	return 0
}

func (l *level) arrange(object *flowcontrolv1.PriorityLevelConfiguration, nominal int) {
	l.nominal = nominal
	percent := func(p *int32) int {
		if p == nil {
			return 0
		}
		return int(math.Round(float64(nominal) * float64(*p) / 100))
	}
	if l.exempt = object.Spec.Type == flowcontrolv1.PriorityLevelEnablementExempt; l.exempt {
		if e := object.Spec.Exempt; e != nil {
			l.lend = percent(e.LendablePercent)
		}
		return
	}
	limited := object.Spec.Limited
	l.lend, l.borrow = percent(limited.LendablePercent), -1
	if limited.BorrowingLimitPercent != nil {
		l.borrow = percent(limited.BorrowingLimitPercent)
	}
	l.rejects = limited.LimitResponse.Type == flowcontrolv1.LimitResponseTypeReject
	queuing := limited.LimitResponse.Queuing
	if l.rejects || queuing == nil {
		return // who waits already still gets a seat
	}
	l.hand, l.length = int(queuing.HandSize), int(queuing.QueueLengthLimit)
	l.resize(int(queuing.Queues))
}

// resize changes the number of queues; who waits is dealt anew.
func (l *level) resize(n int) {
	if n == len(l.queues) {
		return
	}
	old := l.queues
	l.queues = make([]*queue, n)
	for i := range l.queues {
		l.queues[i] = &queue{virtual: l.virtual}
	}
	i := 0
	for _, q := range old {
		for _, t := range q.waiters {
			t.queue = l.queues[i%n]
			t.queue.waiters = append(t.queue.waiters, t)
			i++
		}
	}
}
