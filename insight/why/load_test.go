package why_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/insight"
	"github.com/periplus/periplus/insight/why"
)

// prober says that nothing listens.
type prober struct{ asked []int32 }

func (p *prober) Listens(_ context.Context, _ *corev1.Pod, port int32) error {
	p.asked = append(p.asked, port)
	return errors.New("connection refused")
}

func (p *prober) Resolves(context.Context, string) error { return nil }

func cluster() *fake.Clientset {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.Now()}
	}
	return fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}},
		&corev1.Service{ObjectMeta: meta("web"), Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Pod{
			ObjectMeta: meta("web-1"),
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "web", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "gone"}}}}}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: "shop"},
			Spec:       corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{{Name: "s", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "gone"}}}}, Containers: []corev1.Container{{Name: "web"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodPending},
		},
	)
}

func rules(t *testing.T, c *fake.Clientset, p why.Prober, what string) (*why.Report, []string) {
	t.Helper()
	target, err := why.ParseTarget(what, "shop")
	if err != nil {
		t.Fatal(err)
	}
	s, found, err := why.Load(t.Context(), c, p, target, "shop")
	if err != nil {
		t.Fatal(err)
	}
	r := why.Explain(s, found[0], found[1:]...)
	var out []string
	for _, f := range r.Roots {
		out = append(out, f.Rule)
	}
	return r, out
}

func TestLoadTriesPorts(t *testing.T) {
	t.Parallel()
	p := &prober{}
	_, got := rules(t, cluster(), p, "web")
	if !slices.Equal(p.asked, []int32{80}) {
		t.Errorf("tried ports %v, want 80", p.asked)
	}
	if !slices.Contains(got, "service-port-closed") {
		t.Errorf("found %v, want service-port-closed", got)
	}
}

// TestLoadWithoutRights: what must not be read is not missing.
func TestLoadWithoutRights(t *testing.T) {
	t.Parallel()
	if _, got := rules(t, cluster(), nil, "pod/alone"); !slices.Equal(got, []string{"secret-missing"}) {
		t.Errorf("found %v, want secret-missing", got)
	}
	c := cluster()
	c.PrependReactor("list", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no"))
	})
	r, got := rules(t, c, nil, "pod/alone")
	if len(got) > 0 || len(r.Unread) != 1 {
		t.Errorf("found %v, unread %v: want nothing, and Secret", got, r.Unread)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	s := insight.NewSnapshot(now, "shop", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}})
	for _, c := range []struct{ arg, parse, find string }{
		{"po/web", "", ""},
		{"web", "", ""},
		{"pods/", `"pods/" lacks the name after the slash`, ""},
		{"pod/wbe", "", `there is no Pod "wbe" in namespace "shop"`},
		{"node/n1", "", `there is no Node "n1"`},
		{"wbe", "", `nothing called "wbe" in namespace "shop"; did you mean "web"?`},
	} {
		target, err := why.ParseTarget(c.arg, "shop")
		if text(err) != c.parse {
			t.Errorf("%s: %v, want %q", c.arg, err, c.parse)
		}
		if err != nil {
			continue
		}
		if _, err = target.Find(s, "shop"); text(err) != c.find {
			t.Errorf("%s: %v, want %q", c.arg, err, c.find)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
