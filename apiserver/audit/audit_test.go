package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/audit"
	"github.com/periplus/periplus/apiserver/request"
)

// events is a sink that keeps what it gets.
type events struct {
	mu   sync.Mutex
	list []*auditv1.Event
	fail error
}

func (s *events) Write(list ...*auditv1.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, list...)
	return s.fail
}

func (s *events) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func (s *events) all() []*auditv1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

func policy(t *testing.T, text string) *audit.Policy {
	t.Helper()
	p, err := audit.ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asked is the state of a request of jane, a member of staff.
func asked(method, target string) (*http.Request, *request.State) {
	r := httptest.NewRequest(method, target, nil)
	s := &request.State{Info: request.Parse(r), AuditID: "id-1", Received: time.Now(), Agent: "test", User: &user.DefaultInfo{Name: "jane", Groups: []string{"staff"}}}
	return r, s
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	p := policy(t, `
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:kube-proxy"]}
- {level: None, nonResourceURLs: ["/healthz*", "/version"]}
- {level: Metadata, resources: [{group: "", resources: ["secrets", "pods/*"]}]}
- {level: Request, resources: [{group: "", resources: ["configmaps"], resourceNames: ["a"]}]}
- {level: None, verbs: ["watch"]}
- {level: RequestResponse, userGroups: ["staff"], namespaces: ["prod", ""], omitStages: [ResponseComplete]}
- {level: Metadata, resources: [{group: "apps"}, {group: "batch", resources: ["*/status"]}]}
`)
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/healthz/etcd", ""},
		{"GET", "/version", ""},
		{"GET", "/versions", ""}, // no rule
		{"GET", "/api/v1/namespaces/x/secrets/s", "Metadata"},
		{"GET", "/api/v1/namespaces/x/pods/p/log", "Metadata"},
		{"GET", "/api/v1/namespaces/x/pods/p", "Metadata"}, // as upstream
		{"GET", "/api/v1/namespaces/x/configmaps/a", "Request"},
		{"GET", "/api/v1/namespaces/x/configmaps/b", ""},
		{"GET", "/api/v1/namespaces/prod/configmaps/b", "RequestResponse"},
		{"GET", "/api/v1/namespaces/prod/configmaps?watch=1", ""},
		{"GET", "/api/v1/nodes", "RequestResponse"},
		{"PUT", "/apis/apps/v1/namespaces/x/deployments/d/status", "Metadata"},
		{"PUT", "/apis/batch/v1/namespaces/x/jobs/j/status", "Metadata"},
		{"PUT", "/apis/batch/v1/namespaces/x/jobs/j", ""},
	} {
		sink := &events{}
		a := audit.Make(p, false, slog.New(slog.DiscardHandler), sink)
		r, s := asked(c.method, c.path)
		rec, err := a.Begin(r, s, false)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if rec != nil {
			rec.End()
			switch list := sink.all(); len(list) {
			case 0:
				got = "RequestResponse" // its last stage is left out
			case 1:
				got = string(list[0].Level)
			default:
				t.Errorf("%s: %d events, the first stage is not wanted", c.path, len(list))
			}
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, c.want)
		}
	}
	for _, bad := range []string{
		"rules: []", "rules: [{level: Some}]", "rules: [{level: None, who: x}]",
		`rules: [{level: None, nonResourceURLs: ["/a*b"]}]`, `rules: [{level: None, nonResourceURLs: ["/a"], namespaces: [x]}]`, `omitStages: [Never]
rules: [{level: None}]`,
	} {
		if _, err := audit.ParsePolicy([]byte("apiVersion: audit.k8s.io/v1\nkind: Policy\n" + bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	p := policy(t, "omitManagedFields: true\nrules: [{level: RequestResponse}]")
	sink := &events{}
	a := audit.Make(p, false, slog.New(slog.DiscardHandler), sink)
	r, s := asked("POST", "/api/v1/namespaces/x/configmaps?dryRun=All")
	rec, err := a.Begin(r, s, true)
	if err != nil {
		t.Fatal(err)
	}
	w := rec.Writer(httptest.NewRecorder())
	func() {
		defer rec.End()
		rec.Annotate("k", "v")
		rec.Annotate("k", "w")
		rec.Impersonated(&user.DefaultInfo{Name: "joe"}, "impersonate:user-info")
		rec.About(&metav1.ObjectMeta{Name: "m", UID: "u"})
		rec.Request([]byte(`{"metadata":{"name":"m","uid":"u","managedFields":[{}]},"data":{}}`))
		w.WriteHeader(http.StatusCreated)
		rec.Response([]byte(`{"items":[{"metadata":{"name":"m","managedFields":[{}]}}]}`))
	}()
	list := sink.all()
	if len(list) != 3 || list[0].Stage != auditv1.StageRequestReceived || list[1].Stage != auditv1.StageResponseStarted || list[2].Stage != auditv1.StageResponseComplete {
		t.Fatalf("%+v", list)
	}
	if list[0].ResponseStatus != nil || list[0].Annotations != nil {
		t.Errorf("the first event knows the future: %+v", list[0])
	}
	e := list[2]
	if e.Annotations["k"] != "v" || e.ObjectRef.Name != "m" || e.ObjectRef.UID != "u" || e.ResponseStatus.Code != 201 || e.ImpersonatedUser.Username != "joe" || e.AuthenticationMetadata.ImpersonationConstraint != "impersonate:user-info" ||
		e.User.Username != "jane" || e.RequestURI != "/api/v1/namespaces/x/configmaps?dryRun=All" || e.Verb != "create" {
		t.Errorf("%+v", e)
	}
	if strings.Contains(string(e.RequestObject.Raw)+string(e.ResponseObject.Raw), "managedFields") {
		t.Errorf("%s %s", e.RequestObject.Raw, e.ResponseObject.Raw)
	}

	rec, err = a.Begin(r, s, false)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() { _ = recover() }()
		defer rec.End()
		panic("oh")
	}()
	last := sink.all()[len(sink.all())-1]
	if last.Stage != auditv1.StagePanic || last.ResponseStatus.Message != "APIServer panic'd: oh" || last.ResponseStatus.Code != 500 {
		t.Errorf("%+v", last)
	}

	sink.fail = os.ErrClosed
	if _, err := audit.Make(p, true, slog.New(slog.DiscardHandler), sink).Begin(r, s, false); err == nil {
		t.Error("strict, and the request goes on unlogged")
	}
	if _, err := a.Begin(r, s, false); err != nil {
		t.Errorf("not strict: %v", err)
	}
}

// open makes an auditor from options and ends it with the test.
func open(t *testing.T, change func(*audit.Options)) (a *audit.Auditor, end func()) {
	t.Helper()
	o := audit.Defaults()
	o.PolicyFile = filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(o.PolicyFile, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	change(&o)
	a, err := audit.New(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	return a, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func one(t *testing.T, a *audit.Auditor, path string) {
	t.Helper()
	r, s := asked("GET", path)
	rec, err := a.Begin(r, s, false)
	if err != nil {
		t.Fatal(err)
	}
	rec.Annotate("padding", strings.Repeat("x", 100<<10))
	rec.End()
}

func TestLogFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	a, end := open(t, func(o *audit.Options) { o.LogPath, o.LogMaxSize, o.LogMaxBackup = path, 1, 2 })
	for i := range 50 { // of 100 KB each: five files
		one(t, a, fmt.Sprintf("/x%d", i))
	}
	end()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v; want the file and two old ones", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() > 1<<20 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	e := auditv1.Event{}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil || e.RequestURI != "/x49" || e.Kind != "Event" || e.APIVersion != "audit.k8s.io/v1" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestLegacyFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	a, end := open(t, func(o *audit.Options) { o.LogPath, o.LogFormat, o.LogMode = path, "legacy", "batch" })
	one(t, a, "/api/v1/namespaces/n/pods")
	end() // what waits is written
	data, err := os.ReadFile(path)
	if want := ` AUDIT: id="id-1" stage="ResponseComplete" ip="192.0.2.1" method="list" user="jane" groups="\"staff\"" as="<self>" asgroups="<lookup>" user-agent="test" namespace="n" uri="/api/v1/namespaces/n/pods" response="200"`; err != nil || !strings.HasSuffix(strings.TrimSpace(string(data)), want) {
		t.Errorf("%s\nwant %s, %v", data, want, err)
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	got := make(chan auditv1.EventList, 10)
	refuse := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case code := <-refuse:
			w.WriteHeader(code)
			return
		default:
		}
		list := auditv1.EventList{}
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			t.Error(err)
		}
		got <- list
	}))
	t.Cleanup(server.Close)
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL+"/events")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, end := open(t, func(o *audit.Options) {
		o.WebhookConfig, o.WebhookBackoff, o.BatchSize = config, metav1.Duration{Duration: time.Millisecond}, 3
		o.Truncate, o.TruncateEach = true, 50<<10
	})
	refuse <- http.StatusServiceUnavailable // and once more after a pause
	for i := range 3 {
		one(t, a, fmt.Sprintf("/x%d", i))
	}
	r, s := asked("POST", "/api/v1/namespaces/n/configmaps")
	rec, err := a.Begin(r, s, false)
	if err != nil {
		t.Fatal(err)
	}
	rec.Request([]byte(`{"data":{"a":"` + strings.Repeat("x", 60<<10) + `"}}`))
	rec.End()
	end()
	close(got)
	var all []auditv1.Event
	for list := range got {
		if list.Kind != "EventList" || list.APIVersion != "audit.k8s.io/v1" || len(list.Items) > 3 {
			t.Errorf("%+v", list.TypeMeta)
		}
		all = append(all, list.Items...)
	}
	// The others are too large even without objects.
	if len(all) != 1 || all[0].Annotations["audit.k8s.io/truncated"] != "true" || all[0].RequestObject != nil {
		t.Errorf("%d events: %.300v", len(all), all)
	}
}

// TestNothingToDo: while there is nothing to log, a backend in batches waits without a
// timer, and an event that comes waits no longer than it may.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.log")
		a, end := open(t, func(o *audit.Options) {
			o.LogPath, o.LogMode, o.LogBatch, o.LogWait = path, "batch", 10, metav1.Duration{Duration: 30 * time.Second}
		})
		<-time.After(24 * time.Hour)
		one(t, a, "/x")
		<-time.After(29 * time.Second)
		if info, err := os.Stat(path); err != nil || info.Size() != 0 {
			t.Errorf("%v, %v: it did not wait for more", info, err)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%v, %v: it waits for ever", info, err)
		}
		end()
	})
}
