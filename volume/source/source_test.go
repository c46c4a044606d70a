package source_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/volume/source"
)

func noNode() (*corev1.Node, error) { return nil, apierrors.NewNotFound(corev1.Resource("node"), "n") }

func podWith(uid, configMap string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID("uid-" + uid)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}},
		}}}},
	}
}

func configMap(value, version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: version},
		Data:       map[string]string{"k": value},
	}
}

// Both ways of reading tell of changes, and find what came after the pod.
func TestChanges(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		name := map[bool]string{false: "watch by name", true: "shared informers"}[shared]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			client := fake.NewClientset(configMap("1", "1"))
			changed := make(chan string, 10)
			c := source.Config{Client: client, Node: noNode, Changed: func(kind, ns, name string) { changed <- kind + " " + ns + "/" + name }}
			if shared {
				c.Informers = informers.NewSharedInformerFactory(client, 0)
			}
			s, err := source.New(c)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if shared {
				c.Informers.Start(ctx.Done())
				c.Informers.WaitForCacheSync(ctx.Done())
				<-changed // the first list
			}
			pod := podWith("p", "a")
			s.AddPod(pod)
			got, err := s.ConfigMap("ns", "a")
			if err != nil || got.Data["k"] != "1" {
				t.Fatalf("got %v, %v", got, err)
			}
			if _, err := client.CoreV1().ConfigMaps("ns").Update(ctx, configMap("2", "2"), metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			if what := <-changed; what != "ConfigMap ns/a" {
				t.Errorf("told of %s", what)
			}
			if got, err := s.ConfigMap("ns", "a"); err != nil || got.Data["k"] != "2" {
				t.Errorf("got %v, %v", got, err)
			}
			if _, err := s.ConfigMap("ns", "y"); err == nil || err.Error() != `configmap "y" not found` || !apierrors.IsNotFound(err) {
				t.Errorf("absent: %v", err)
			}
			if _, err := s.Secret("ns", "y"); err == nil || err.Error() != `secret "y" not found` {
				t.Errorf("absent: %v", err)
			}
			s.RemovePod(pod.UID)
		})
	}
}

// An object is watched once for all pods that refer to it, by its name, and not
// any more when the last is gone.
func TestWatchesAreCounted(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(configMap("1", "1"))
	s, err := source.New(source.Config{Client: client, Node: noNode})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	one, two := podWith("one", "a"), podWith("two", "a")
	two.UID = "uid-two"
	s.AddPod(one)
	s.AddPod(two)
	s.AddPod(two)
	if _, err := s.ConfigMap("ns", "a"); err != nil {
		t.Fatal(err)
	}
	s.RemovePod(one.UID)
	if _, err := s.ConfigMap("ns", "a"); err != nil {
		t.Fatal(err)
	}
	lists, gets := 0, 0
	for _, a := range client.Actions() {
		switch a := a.(type) {
		case clienttesting.ListAction:
			lists++
			if f := a.GetListRestrictions().Fields.String(); f != "metadata.name=a" {
				t.Errorf("listed with %q", f)
			}
		case clienttesting.GetAction:
			gets++
		}
	}
	if lists != 1 || gets != 0 {
		t.Errorf("%d lists and %d gets, want one list", lists, gets)
	}
	s.RemovePod(two.UID)
	if _, err := s.ConfigMap("ns", "a"); err != nil { // asked for directly
		t.Fatal(err)
	}
	last := client.Actions()[len(client.Actions())-1]
	if last.GetVerb() != "get" {
		t.Errorf("after the last pod: %s", last.GetVerb())
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		issued, down := 0, false
		client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if down {
				return true, nil, apierrors.NewServiceUnavailable("away")
			}
			issued++
			req, ok := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
			if !ok {
				t.Fatalf("asked for %T", a)
			}
			out := req.DeepCopy()
			out.Status.Token = "t"
			out.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(*req.Spec.ExpirationSeconds) * time.Second))
			return true, out, nil
		})
		s, err := source.New(source.Config{Client: client, Node: noNode})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ask := func(seconds int64) error {
			_, err := s.Token(t.Context(), "ns", "sa", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: &seconds, BoundObjectRef: &authenticationv1.BoundObjectReference{UID: "u"},
			}})
			return err
		}
		check := func(when string, err error, want int) {
			t.Helper()
			if err != nil || issued != want {
				t.Errorf("%s: %v, %d tokens issued, want %d", when, err, issued, want)
			}
		}
		check("first", ask(3600), 1)
		<-time.After(47 * time.Minute)
		check("before 80 %", ask(3600), 1)
		<-time.After(2 * time.Minute)
		check("after 80 %", ask(3600), 2)
		check("another life", ask(600), 3)
		down = true
		<-time.After(50 * time.Minute)
		check("away, still valid", ask(3600), 3)
		<-time.After(11 * time.Minute)
		if err := ask(3600); err == nil {
			t.Error("an expired token was returned")
		}
		down = false
		check("long life", ask(7*24*3600), 4)
		<-time.After(24*time.Hour + time.Minute)
		check("after a day", ask(7*24*3600), 5)
	})
}
