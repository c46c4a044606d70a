package replicaset_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/replicaset"
)

func newSet(replicas int32) *appsv1.ReplicaSet {
	labels := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "uid-web", Generation: 1},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
}

func start(t *testing.T, change func(*controllers.Env), objects ...runtime.Object) *controllerstest.Cluster {
	return controllerstest.Start(t, []controllers.Controller{replicaset.Controller()}, change, objects...)
}

func status(t *testing.T, c *controllerstest.Cluster) appsv1.ReplicaSetStatus {
	t.Helper()
	rs, err := c.Client.AppsV1().ReplicaSets("default").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return rs.Status
}

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Labels: labels}}
}

// TestAdoptAndRelease takes a matching pod without owner for one of its own, and
// lets a pod go whose label was changed, replacing it.
func TestAdoptAndRelease(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := start(t, nil, newSet(2), pod("stray", map[string]string{"app": "web"}), pod("other", map[string]string{"app": "db"}))
	c.Until("there are two", func() bool { return status(t, c).Replicas == 2 })
	owned := func(name string) bool {
		p, err := c.Client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return metav1.IsControlledBy(p, newSet(2))
	}
	if len(c.Pods("default")) != 3 || !owned("stray") || owned("other") {
		t.Errorf("%d pods, stray owned %v, other owned %v", len(c.Pods("default")), owned("stray"), owned("other"))
	}
	_, err := c.Client.CoreV1().Pods("default").Patch(ctx, "stray", types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"debug"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Until("it is released and replaced", func() bool { return !owned("stray") && len(c.Pods("default")) == 4 })
}

// TestQuota shows a refused creation in the status and with an event, and does not
// try all pods against a closed door.
func TestQuota(t *testing.T) {
	t.Parallel()
	refusal := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("exceeded quota: compute"))
	c := start(t, func(e *controllers.Env) {
		e.Client.(interface {
			PrependReactor(verb, resource string, f clienttesting.ReactionFunc)
		}).PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
	}, newSet(100))
	c.Until("the failure shows", func() bool {
		s := status(t, c)
		return len(s.Conditions) == 1 && s.Conditions[0].Type == appsv1.ReplicaSetReplicaFailure && s.Conditions[0].Reason == "FailedCreate"
	})
	c.Until("it is told", func() bool { return slices.Contains(c.Events(), "FailedCreate: Error creating: "+refusal.Error()) })
}

// TestTerminating replaces a pod at once while it is being deleted, and counts it.
func TestTerminating(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := start(t, nil, newSet(1))
	c.Until("there is one", func() bool { return status(t, c).Replicas == 1 })
	p := c.Pods("default")[0]
	now := metav1.Now()
	p.DeletionTimestamp = &now
	p.Finalizers = []string{"example.com/slow"}
	if _, err := c.Client.CoreV1().Pods("default").Update(ctx, &p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Until("it is replaced", func() bool {
		s := status(t, c)
		return len(c.Pods("default")) == 2 && s.Replicas == 1 && s.TerminatingReplicas != nil && *s.TerminatingReplicas == 1
	})
}
