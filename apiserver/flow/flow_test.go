package flow_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/flow"
	"github.com/periplus/periplus/apiserver/request"
)

// stored is objects that a test has made.
type stored struct {
	version int64
	schemas []runtime.Object
	levels  []runtime.Object
	count   int // of objects of a kilobyte
}

func (s *stored) List(gvr schema.GroupVersionResource, _ string) ([]runtime.Object, error) {
	if gvr.Resource == "flowschemas" {
		return s.schemas, nil
	}
	return s.levels, nil
}
func (s *stored) Version(schema.GroupVersionResource) int64 { return s.version }
func (s *stored) Size(schema.GroupVersionResource) (objects, bytes int) {
	return s.count, s.count * 1000
}

func ptr[T any](v T) *T { return &v }

// level is a priority level with queues.
func level(name string, shares, lendable int32, borrow *int32, queues, hand, length int32) *flowcontrolv1.PriorityLevelConfiguration {
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Spec: flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &shares, LendablePercent: &lendable, BorrowingLimitPercent: borrow,
			LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: queues, HandSize: hand, QueueLengthLimit: length}},
		}},
	}
}

// by is a schema for the members of a group, each a flow of his own.
func by(group, level string) *flowcontrolv1.FlowSchema {
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: group, UID: types.UID("uid-" + group)},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level}, MatchingPrecedence: 100,
			DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:         []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: group}}},
				ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, ClusterScope: true, Namespaces: []string{"*"}}},
				NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
			}},
		},
	}
}

// alone is one level for all seats, for the group "staff".
func alone(seats int, l *flowcontrolv1.PriorityLevelConfiguration) *flow.Control {
	s := &stored{version: 1, levels: []runtime.Object{l, nothing()}, schemas: []runtime.Object{by("staff", l.Name)}}
	return control(s, seats, nil)
}

func control(s *stored, seats int, changed func()) *flow.Control {
	return flow.New(flow.Config{Objects: s, Seats: seats, Patience: time.Hour, Changed: changed})
}

// nothing is the level of everybody else, without seats.
func nothing() *flowcontrolv1.PriorityLevelConfiguration {
	l := level(flowcontrolv1.PriorityLevelConfigurationNameCatchAll, 0, 0, nil, 1, 1, 1)
	l.Spec.Limited.LimitResponse = flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject}
	return l
}

// ask is one request of somebody.
func ask(ctx context.Context, c *flow.Control, name, target string, groups ...string) (*flow.Ticket, http.Header, error) {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	w := httptest.NewRecorder()
	t, err := c.Enter(ctx, w, r, &request.State{Info: request.Parse(r), User: &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}})
	return t, w.Header(), err
}

// value reads a metric off the table.
func waiting(c *flow.Control, level string) string {
	var b strings.Builder
	c.Dump(&b)
	for line := range strings.Lines(b.String()) {
		if f := strings.Fields(strings.ReplaceAll(line, ",", "")); f[0] == level {
			return f[4]
		}
	}
	return ""
}

// TestGreedy: somebody who sends a thousand requests at once does not keep anybody
// else waiting for them.
func TestGreedy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := alone(10, level("work", 30, 0, nil, 64, 6, 50))
		seated := make(chan *flow.Ticket, 1000)
		for range 250 {
			go func() {
				if ticket, _, err := ask(t.Context(), c, "greedy", "/api/v1/pods", "staff"); err == nil {
					seated <- ticket
				}
			}()
		}
		synctest.Wait()
		if len(seated) != 10 {
			t.Fatalf("%d requests are served, want 10", len(seated))
		}
		jane := make(chan *flow.Ticket, 10)
		for range 3 {
			go func() {
				ticket, _, err := ask(t.Context(), c, "jane", "/api/v1/pods", "staff")
				if err != nil {
					t.Error(err)
				}
				jane <- ticket
			}()
			synctest.Wait()
		}
		// Each request of the greedy takes a second. Hers come one after the other, no
		// later than one round of the queues that he fills.
		rounds := 0
		for ; len(jane) < 3; rounds++ {
			<-time.After(time.Second)
			(<-seated).Leave()
			synctest.Wait()
			if rounds > 30 {
				t.Fatalf("jane still waits after %d requests of others; %s wait", rounds, waiting(c, "work"))
			}
		}
		if w := waiting(c, "work"); w == "0" {
			t.Error("nobody waits any more: it shows nothing")
		}
		for range 3 {
			(<-jane).Leave()
		}
		for synctest.Wait(); len(seated) > 0; synctest.Wait() {
			(<-seated).Leave()
		}
		if w := waiting(c, "work"); w != "0" {
			t.Errorf("%s requests wait for nothing", w)
		}
	})
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := alone(1, level("work", 30, 0, nil, 1, 1, 2))
		first, header, err := ask(t.Context(), c, "a", "/api/v1/pods", "staff")
		if err != nil || header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) != "uid-staff" || header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID) != "uid-work" {
			t.Fatalf("%v, %v", header, err)
		}
		late := make(chan error, 2)
		begin := time.Now()
		for range 2 {
			go func() {
				_, _, err := ask(t.Context(), c, "a", "/api/v1/pods", "staff")
				late <- err
			}()
		}
		synctest.Wait()
		if _, _, err := ask(t.Context(), c, "b", "/api/v1/pods", "staff"); err == nil || err.Error() != "queue-full" {
			t.Errorf("a third that waits: %v", err)
		}
		if _, _, err := ask(t.Context(), c, "x", "/api/v1/pods"); err == nil {
			t.Error("a level without seats that rejects has served somebody")
		}
		for range 2 {
			if err := <-late; err == nil || err.Error() != "time-out" || time.Since(begin) != time.Hour {
				t.Errorf("%v after %s", err, time.Since(begin))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, _, err := ask(ctx, c, "a", "/api/v1/pods", "staff")
			gone <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-gone; err == nil || err.Error() != "cancelled" {
			t.Errorf("%v", err)
		}
		first.Leave()
		first.Leave()
		again, _, err := ask(t.Context(), c, "a", "/api/v1/pods", "staff")
		if err != nil {
			t.Error(err)
		}
		again.Leave()
		w := httptest.NewRecorder()
		flow.Refuse(w)
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || w.Body.String() != "Too many requests, please try again later.\n" {
			t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
		}
	})
}

// TestLending: a level uses seats that others do not need, as far as both allow it,
// and gives them back before anything else.
func TestLending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stored{
			version: 1,
			levels:  []runtime.Object{level("poor", 10, 0, ptr(int32(100)), 4, 1, 50), level("rich", 30, 50, nil, 4, 1, 50), nothing()},
			schemas: []runtime.Object{by("poor", "poor"), by("rich", "rich")},
		}
		c := control(s, 40, nil)
		enter := func(who string, n int) chan *flow.Ticket {
			out := make(chan *flow.Ticket, n)
			for range n {
				go func() {
					if ticket, _, err := ask(t.Context(), c, who, "/api/v1/pods", who); err == nil {
						out <- ticket
					}
				}()
			}
			synctest.Wait()
			return out
		}
		poor := enter("poor", 50)
		if len(poor) != 20 { // its ten, and as many borrowed: of the fifteen that may be lent
			t.Fatalf("poor has %d seats, want 20", len(poor))
		}
		rich := enter("rich", 30)
		if len(rich) != 20 {
			t.Fatalf("rich has %d seats, want the 20 that are not lent", len(rich))
		}
		for range 20 { // all that poor had
			(<-poor).Leave()
			synctest.Wait()
		}
		if len(rich) != 30 {
			t.Errorf("rich has %d seats, want all 30", len(rich))
		}
		if len(poor) != 10 {
			t.Errorf("poor has %d seats, want its own 10", len(poor))
		}
		for len(rich) > 0 {
			(<-rich).Leave()
		}
		for synctest.Wait(); len(poor) > 0; synctest.Wait() {
			(<-poor).Leave()
		}
	})
}

// TestWidth: a long list takes several seats, and waits until they are there.
func TestWidth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stored{version: 1, count: 450, levels: []runtime.Object{level("work", 10, 0, nil, 4, 1, 50), nothing()}, schemas: []runtime.Object{by("staff", "work")}}
		c := control(s, 40, nil) // of which one request takes six at most
		var seated []*flow.Ticket
		for range 8 {
			ticket, _, err := ask(t.Context(), c, "a", "/api/v1/pods", "staff") // five seats each
			if err != nil {
				t.Fatal(err)
			}
			seated = append(seated, ticket)
		}
		done := make(chan *flow.Ticket, 3)
		for i, target := range []string{"/api/v1/pods?limit=100", "/api/v1/namespaces/n/pods/p", "/api/v1/pods?watch=1&resourceVersion=5"} {
			go func() {
				ticket, _, err := ask(t.Context(), c, fmt.Sprint(i), target, "staff")
				if err != nil {
					t.Error(err)
				}
				done <- ticket
			}()
		}
		synctest.Wait()
		if len(done) != 0 {
			t.Error("there was a seat left")
		}
		seated[0].Leave()
		synctest.Wait()
		if len(done) != 3 {
			t.Errorf("%d small ones are served, want all three", len(done))
		}
		for _, ticket := range seated {
			ticket.Leave()
		}
		for range 3 {
			(<-done).Leave()
		}
	})
}

// TestWatched: a write of what many watch takes the seats of those who tell them, and
// keeps them for a while after its end.
func TestWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := alone(40, level("work", 10, 0, nil, 4, 1, 50))
		watch := func(target string) func() {
			i := request.Parse(httptest.NewRequest(http.MethodGet, target, nil))
			return c.Watching(&i)
		}
		var ends []func()
		for range 30 {
			ends = append(ends, watch("/api/v1/configmaps?watch=1"))
		}
		for range 9 {
			ends = append(ends, watch("/api/v1/namespaces/n/configmaps?watch=1"), watch("/api/v1/namespaces/other/configmaps?watch=1"))
		}
		ends = append(ends, watch("/api/v1/namespaces/n/configmaps?watch=1&fieldSelector=metadata.name%3Da"))
		write := func() *flow.Ticket {
			r := httptest.NewRequest(http.MethodPut, "/api/v1/namespaces/n/configmaps/a", nil)
			ticket, err := c.Enter(t.Context(), httptest.NewRecorder(), r, &request.State{Info: request.Parse(r), User: &user.DefaultInfo{Name: "a", Groups: []string{"staff"}}})
			if err != nil {
				t.Fatal(err)
			}
			return ticket
		}
		var tickets []*flow.Ticket
		for range 10 { // forty watch: four seats each
			tickets = append(tickets, write())
		}
		late := make(chan *flow.Ticket, 1)
		go func() { late <- write() }()
		synctest.Wait()
		begin := time.Now()
		for _, ticket := range tickets {
			ticket.Leave()
		}
		(<-late).Leave()
		if took := time.Since(begin); took != 5*time.Millisecond {
			t.Errorf("the seats came back after %s, want the 5 ms in which forty are told", took)
		}
		for _, end := range ends {
			end()
		}
		<-time.After(time.Second)
		for range 40 { // nobody watches: one seat
			tickets = append(tickets, write())
		}
		for _, ticket := range tickets {
			ticket.Leave()
		}
	})
}

// TestPlain are limits without fairness.
func TestPlain(t *testing.T) {
	t.Parallel()
	l := &flow.Limits{Reading: 1, Writing: 1}
	enter := func(method string, groups ...string) (func(), bool) {
		r := httptest.NewRequest(method, "/api/v1/namespaces/n/pods/p", nil)
		return l.Enter(&request.State{Info: request.Parse(r), User: &user.DefaultInfo{Name: "a", Groups: groups}})
	}
	leave, ok := enter(http.MethodGet)
	if !ok {
		t.Fatal("the first")
	}
	if _, ok := enter(http.MethodGet); ok {
		t.Error("a second reads")
	}
	if _, ok := enter(http.MethodGet, user.SystemPrivilegedGroup); !ok {
		t.Error("an administrator has to wait")
	}
	if _, ok := enter(http.MethodPut); !ok {
		t.Error("who writes is counted for himself")
	}
	leave()
}

// TestTables are what is shown for the search of errors.
func TestTables(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := alone(1, level("work", 30, 0, nil, 2, 1, 5))
		first, _, err := ask(t.Context(), c, "jane", "/api/v1/pods", "staff")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan *flow.Ticket)
		go func() {
			ticket, _, _ := ask(t.Context(), c, "joe", "/api/v1/namespaces/n/pods/p", "staff")
			done <- ticket
		}()
		synctest.Wait()
		var queues, requests strings.Builder
		c.DumpQueues(&queues)
		c.DumpRequests(&requests, true)
		if n := strings.Count(queues.String(), "\nwork,"); n != 2 {
			t.Errorf("%d queues\n%s", n, queues.String())
		}
		lines := strings.Split(strings.TrimSpace(requests.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[1], "joe") || !strings.Contains(lines[2], "jane") || !strings.Contains(lines[2], "-1,") {
			t.Errorf("%s", requests.String())
		}
		first.Leave()
		(<-done).Leave()
	})
}

// TestChange: what changes in the objects holds for those that wait, too.
func TestChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stored{version: 1, levels: []runtime.Object{level("work", 10, 0, nil, 4, 2, 50), nothing()}, schemas: []runtime.Object{by("staff", "work")}}
		changed := make(chan bool, 8)
		c := control(s, 1, func() { changed <- true })
		first, _, err := ask(t.Context(), c, "a", "/api/v1/pods", "staff")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan *flow.Ticket, 5)
		for range 5 {
			go func() {
				ticket, _, _ := ask(t.Context(), c, "a", "/api/v1/pods", "staff")
				done <- ticket
			}()
		}
		synctest.Wait()
		s.version, s.levels = 2, []runtime.Object{level("work", 10, 0, nil, 2, 1, 50), nothing()}
		waiting(c, "work")
		if len(done) != 0 {
			t.Error("a new number of queues has made seats")
		}
		exempt := level("work", 0, 0, nil, 0, 0, 0)
		exempt.Spec = flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementExempt, Exempt: &flowcontrolv1.ExemptPriorityLevelConfiguration{}}
		s.version, s.levels = 3, []runtime.Object{exempt, nothing()}
		waiting(c, "work")
		for range 5 {
			(<-done).Leave()
		}
		first.Leave()
		synctest.Wait()
		if len(changed) != 3 {
			t.Errorf("told of %d changes, want 3", len(changed))
		}
	})
}

// TestDefaults: until there are objects, upstream's hold.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c := control(&stored{}, flow.Seats, nil)
	for _, r := range []struct {
		who, target string
		groups      []string
		exempt      bool
	}{
		{"root", "/api/v1/pods", []string{user.SystemPrivilegedGroup}, true},
		{"jane", "/healthz", nil, true},
		{"jane", "/api/v1/pods", nil, false},
		{"system:node:n", "/api/v1/nodes/n", []string{user.NodesGroup}, false},
	} {
		ticket, header, err := ask(t.Context(), c, r.who, r.target, r.groups...)
		var b strings.Builder
		c.Dump(&b)
		exempt := strings.Contains(strings.ReplaceAll(b.String(), " ", ""), "\nexempt,0,false,false,0,1,")
		if err != nil || exempt != r.exempt || header[http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)] == nil {
			t.Errorf("%s %s: %v, %v, %v", r.who, r.target, ticket, header, err)
		}
		ticket.Leave()
	}
}

// BenchmarkEnter is a request that finds a free seat.
func BenchmarkEnter(b *testing.B) {
	c := control(&stored{}, flow.Seats, nil)
	r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/n/pods/p", nil)
	s := &request.State{Info: request.Parse(r), User: &user.DefaultInfo{Name: "jane", Groups: []string{"staff", user.AllAuthenticated}}}
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		t, err := c.Enter(b.Context(), w, r, s)
		if err != nil {
			b.Fatal(err)
		}
		t.Leave()
	}
}
