package apiserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/flow"
	"github.com/periplus/periplus/apiserver/request"
)

// sendAs is one request of somebody.
func sendAs(t testing.TB, s *apiserver.Server, name, target string, groups ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}), http.MethodGet, target, nil)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// TestFairness: one client fills the server with requests that hang; kubectl of another
// user and of the administrator work as before.
func TestFairness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free, greedy := make(chan struct{}), make(chan int, 2000)
		hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-free:
			case <-r.Context().Done():
			}
		})
		s, c := startWith(t, func(config *apiserver.Config) {
			config.Extra, config.MaxInFlight, config.MaxMutatingInFlight = map[string]http.Handler{"/hang": hang}, 20, 20
		})
		may(t, c, "greedy", "jane")
		synctest.Wait() // the objects of fairness are made
		for range 1000 {
			go func() { greedy <- sendAs(t, s, "greedy", "/hang").Code }()
		}
		synctest.Wait()
		refused := 0
		for len(greedy) > 0 {
			if code := <-greedy; code == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused == 0 {
			t.Error("a thousand requests wait, and none is refused")
		}
		// Those of the system are on levels of their own.
		if w := send(t, s, http.MethodGet, "/api/v1/namespaces", "", nil); w.Code != http.StatusOK {
			t.Errorf("the administrator: %d %s", w.Code, w.Body)
		}
		if w := sendAs(t, s, "system:node:n", "/api/v1/nodes", user.NodesGroup); w.Code == http.StatusTooManyRequests {
			t.Errorf("a node: %d %s", w.Code, w.Body)
		}
		// Jane is on the same level as the greedy one, whose requests end one by one.
		jane := make(chan *httptest.ResponseRecorder, 1)
		go func() { jane <- sendAs(t, s, "jane", "/api/v1/namespaces") }()
		synctest.Wait()
		ended := 0
		for ; len(jane) == 0 && ended < 40; ended++ {
			free <- struct{}{}
			synctest.Wait()
		}
		if len(jane) == 0 {
			t.Fatal("jane waits behind the greedy one")
		}
		w := <-jane
		if w.Code != http.StatusOK || w.Header().Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) == "" || w.Header().Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID) == "" {
			t.Errorf("jane: %d %v", w.Code, w.Header())
		}
		metrics := send(t, s, http.MethodGet, "/metrics", "", nil).Body.String()
		for _, want := range []string{`apiserver_flowcontrol_rejected_requests_total{flow_schema="global-default",priority_level="global-default",reason="queue-full"}`, `apiserver_flowcontrol_current_inqueue_requests{flow_schema="global-default",priority_level="global-default"}`, `apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"}`} {
			if !strings.Contains(metrics, want) {
				t.Errorf("/metrics lacks %s", want)
			}
		}
		if dump := send(t, s, http.MethodGet, "/debug/api_priority_and_fairness/dump_priority_levels", "", nil).Body.String(); !strings.Contains(dump, "\nexempt,") {
			t.Errorf("%s", dump)
		}
		close(free)
		synctest.Wait()
		if len(greedy) != 1000-refused {
			t.Errorf("%d requests have ended, want %d", len(greedy), 1000-refused)
		}
	})
}

// may gives users what the test asks for.
func may(t *testing.T, c kubernetes.Interface, users ...string) {
	t.Helper()
	for _, u := range users {
		allow(t, c, u, "list", "", "namespaces")
	}
	role := `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"hang"},"rules":[{"nonResourceURLs":["/hang"],"verbs":["get"]}]}`
	binding := `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"hang"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"hang"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]}`
	for path, body := range map[string]string{"clusterroles": role, "clusterrolebindings": binding} {
		if err := c.RbacV1().RESTClient().Post().Resource(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlowObjects: the objects that every cluster has are there and are kept as they
// are, unless somebody says not to; schemas tell whether their level is there.
func TestFlowObjects(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t)
		synctest.Wait()
		ctx := t.Context()
		condition := func(c *kubernetes.Clientset, name string) string {
			synctest.Wait()
			f, err := c.FlowcontrolV1().FlowSchemas().Get(ctx, name, metav1.GetOptions{})
			if err != nil || len(f.Status.Conditions) != 1 {
				return ""
			}
			return string(f.Status.Conditions[0].Type) + "=" + string(f.Status.Conditions[0].Status) + " " + f.Status.Conditions[0].Reason
		}
		flows := c.FlowcontrolV1()
		levels, err := flows.PriorityLevelConfigurations().List(ctx, metav1.ListOptions{})
		if err != nil || len(levels.Items) != 8 {
			t.Errorf("%d levels, %v", len(levels.Items), err)
		}
		schemas, err := flows.FlowSchemas().List(ctx, metav1.ListOptions{})
		if err != nil || len(schemas.Items) != 11 {
			t.Errorf("%d schemas, %v", len(schemas.Items), err)
		}
		for _, f := range schemas.Items {
			if f.Annotations[flowcontrolv1.AutoUpdateAnnotationKey] != "true" {
				t.Errorf("%s: %v", f.Name, f.Annotations)
			}
		}
		if got := condition(c, "global-default"); got != "Dangling=False Found" {
			t.Errorf("global-default: %s", got)
		}
		f := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "lost"}, Spec: flowcontrolv1.FlowSchemaSpec{PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "missing"}, MatchingPrecedence: 5}}
		if _, err := flows.FlowSchemas().Create(ctx, f, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		condition(c, "lost") // the next request finds it
		if got := condition(c, "lost"); got != "Dangling=True NotFound" {
			t.Errorf("lost: %s", got)
		}
		for name, patch := range map[string]string{
			"global-default":          `{"spec":{"matchingPrecedence":9000}}`,
			"kube-scheduler":          `{"spec":{"matchingPrecedence":900}}`,
			"service-accounts":        `{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":"false"}},"spec":{"matchingPrecedence":8999}}`,
			"system-leader-election":  `{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":null}},"spec":{"matchingPrecedence":150}}`,
			"kube-controller-manager": `{"metadata":{"annotations":{"apf.kubernetes.io/autoupdate-spec":null}}}`,
		} {
			if _, err := flows.FlowSchemas().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := flow.Keep(ctx, c.FlowcontrolV1()); err != nil { // as at the next start
			t.Error(err)
		}
		for name, want := range map[string]int32{"global-default": 9900, "kube-scheduler": 800, "service-accounts": 8999, "system-leader-election": 150, "kube-controller-manager": 800} {
			f, err := c.FlowcontrolV1().FlowSchemas().Get(ctx, name, metav1.GetOptions{})
			if err != nil || f.Spec.MatchingPrecedence != want {
				t.Errorf("%s: %d, %v, want %d", name, f.Spec.MatchingPrecedence, err, want)
			}
		}
	})
}
