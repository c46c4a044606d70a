package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// isAnswer tells an answer of the server from a connection that broke.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

func nameOf(object string) string { return object[strings.IndexByte(object, '/')+1:] }

// stored reads the states of all that writers make, as the server has them now.
func stored(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	found := map[string]string{}
	maps, err := client.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: mark})
	if err != nil {
		return nil, err
	}
	for _, m := range maps.Items {
		if m.Data["state"] != m.Labels[mark] {
			return nil, fmt.Errorf("config map %s is of two writes: %q and %q", m.Name, m.Labels[mark], m.Data["state"])
		}
		found["configmap/"+m.Name] = m.Labels[mark]
	}
	deployments, err := client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: mark})
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		found["deployment/"+d.Name] = d.Labels[mark]
	}
	return found, nil
}

// A view follows the workloads of a cluster from a restart on.
type view struct {
	deployments appslisters.DeploymentLister
	sets        appslisters.ReplicaSetLister
	pods        corelisters.PodLister
	changed     chan struct{} // has a place for one
	stop        func()

	mu sync.Mutex
	// most is the largest number that each ReplicaSet was told to have, first how
	// many it had at the restart, and had are all pods that it has had since. Those
	// that were on their way out already do not count.
	most  map[types.UID]int                    // guarded by mu
	first map[types.UID]int                    // guarded by mu
	had   map[types.UID]map[types.UID]struct{} // guarded by mu
}

func follow(ctx context.Context, client kubernetes.Interface) (*view, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	v := &view{
		deployments: factory.Apps().V1().Deployments().Lister(),
		sets:        factory.Apps().V1().ReplicaSets().Lister(),
		pods:        factory.Core().V1().Pods().Lister(),
		changed:     make(chan struct{}, 1),
		most:        map[types.UID]int{},
		first:       map[types.UID]int{},
		had:         map[types.UID]map[types.UID]struct{}{},
	}
	see := func(obj any, first bool) {
		v.note(obj, first)
		v.wake()
	}
	for _, i := range []cache.SharedIndexInformer{
		factory.Apps().V1().Deployments().Informer(), factory.Apps().V1().ReplicaSets().Informer(), factory.Core().V1().Pods().Informer(),
	} {
		_, err := i.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc: see, UpdateFunc: func(_, obj any) { see(obj, false) }, DeleteFunc: func(any) { v.wake() },
		})
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	v.stop = func() {
		cancel()
		factory.Shutdown()
	}
	for t, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			v.stop()
			return nil, fmt.Errorf("follow %v: %w", t, context.Cause(ctx))
		}
	}
	return v, nil
}

func (v *view) wake() {
	select {
	case v.changed <- struct{}{}:
	default:
	}
}

func (v *view) note(obj any, first bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch o := obj.(type) {
	case *appsv1.ReplicaSet:
		v.most[o.UID] = max(v.most[o.UID], int(*o.Spec.Replicas))
	case *corev1.Pod:
		owner := metav1.GetControllerOf(o)
		if owner == nil || o.DeletionTimestamp != nil {
			return
		}
		if v.had[owner.UID] == nil {
			v.had[owner.UID] = map[types.UID]struct{}{}
		}
		v.had[owner.UID][o.UID] = struct{}{}
		if first {
			v.first[owner.UID]++
		}
	}
}

// tooMany names the ReplicaSets that made a pod too many.
func (v *view) tooMany() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var wrong []string
	for set, pods := range v.had {
		if most, known := v.most[set]; known && len(pods) > max(most, v.first[set]) {
			wrong = append(wrong, fmt.Sprintf("replica set %s had %d pods at the restart and has had %d since, but never wanted more than %d",
				set, v.first[set], len(pods), most))
		}
	}
	return wrong
}

// settled returns nil when every Deployment is as it should be and there is no
// other pod.
func (v *view) settled() error {
	all, err := v.deployments.List(labels.Everything())
	if err != nil {
		return err
	}
	wanted := map[types.UID]int32{}
	for _, d := range all {
		s, n := d.Status, *d.Spec.Replicas
		if s.ObservedGeneration < d.Generation || s.Replicas != n || s.UpdatedReplicas != n || s.ReadyReplicas != n || s.AvailableReplicas != n {
			return fmt.Errorf("deployment %s: wants %d, generation %d, status %+v", d.Name, n, d.Generation, s)
		}
		wanted[d.UID] = n
	}
	sets, err := v.sets.List(labels.Everything())
	if err != nil {
		return err
	}
	ofSet := map[types.UID]int32{}
	for _, s := range sets {
		owner := metav1.GetControllerOf(s)
		if owner == nil {
			return fmt.Errorf("replica set %s has no owner", s.Name)
		}
		if _, ok := wanted[owner.UID]; !ok {
			return fmt.Errorf("replica set %s outlives deployment %s", s.Name, owner.Name)
		}
		ofSet[s.UID] = *s.Spec.Replicas
	}
	pods, err := v.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, p := range pods {
		owner := metav1.GetControllerOf(p)
		if owner == nil {
			return fmt.Errorf("pod %s has no owner", p.Name)
		}
		n, ok := ofSet[owner.UID]
		if !ok {
			return fmt.Errorf("pod %s outlives replica set %s", p.Name, owner.Name)
		}
		if p.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s is on its way out", p.Name)
		}
		ofSet[owner.UID] = n - 1
	}
	for _, s := range sets {
		if n := ofSet[s.UID]; n != 0 {
			return fmt.Errorf("replica set %s wants %d pods and has %d", s.Name, *s.Spec.Replicas, *s.Spec.Replicas-n)
		}
	}
	return nil
}

// await returns when the check passes, which is made again whenever anything has
// changed; else, at the end of ctx, with what was wrong last. Directories and
// cgroups of pods go after the last event of all, hence the ticker.
func (v *view) await(ctx context.Context, check func() error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-v.changed:
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("the cluster does not settle: %w", err)
		}
	}
}
