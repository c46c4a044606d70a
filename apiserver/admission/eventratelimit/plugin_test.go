package eventratelimit_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	testclock "k8s.io/utils/clock/testing"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/eventratelimit"
)

func TestEventRateLimit(t *testing.T) {
	t.Parallel()
	now := testclock.NewFakePassiveClock(time.Unix(1_000_000, 0))
	p, err := eventratelimit.New([]byte(`
apiVersion: eventratelimit.admission.k8s.io/v1alpha1
kind: Configuration
limits:
- {type: Server, qps: 100, burst: 100}
- {type: Namespace, qps: 1, burst: 3}
- {type: User, qps: 100, burst: 100, cacheSize: 10}
- {type: SourceAndObject, qps: 1, burst: 2}
`), now)
	if err != nil {
		t.Fatal(err)
	}
	event := func(namespace, about string, dry bool) error {
		return admissiontest.Ask(t.Context(), p, &admission.Attributes{
			Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource("events"), Kind: corev1.SchemeGroupVersion.WithKind("Event"),
			Namespace: namespace, DryRun: dry, User: &user.DefaultInfo{Name: "kubelet"},
			Object: &corev1.Event{Source: corev1.EventSource{Component: "kubelet"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: about}},
		})
	}
	for i, c := range []struct {
		namespace, about string
		dry              bool
		pass             time.Duration
		want             string
	}{
		{"a", "one", false, 0, ""},
		{"a", "one", false, 0, ""},
		{"a", "one", false, 0, "limit reached on type SourceAndObject for key kubeletPodone"},
		{"a", "two", false, 0, "limit reached on type Namespace for key a"}, // the refused one counted
		{"a", "one", true, 0, ""},
		{"b", "three", false, 0, ""},
		{"a", "two", false, 2 * time.Second, ""},
	} {
		now.SetTime(now.Now().Add(c.pass))
		err := event(c.namespace, c.about, c.dry)
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("event %d: %v, want %q", i, err, c.want)
		}
	}
	for name, config := range map[string]string{
		"none": "", "no limits": "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration", "another kind": "kind: Other",
		"no burst": "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 1}]",
		"type":     "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Cluster, qps: 1, burst: 1}]",
	} {
		if _, err := eventratelimit.New([]byte(config), now); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
