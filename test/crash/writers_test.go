package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	namespace = "load"
	// mark is on everything that a writer makes; its value is the object's state.
	mark = "crash.test/state"

	mapWriters        = 5
	mapsEach          = 20
	deploymentWriters = 2
	deploymentsEach   = 2
	mostReplicas      = 3
	// turnEvery: so many writes of config maps come to one of a Deployment, which
	// costs a thousand times as much.
	turnEvery = 20
)

// writers write until ctx ends or the server is gone.
type writers struct {
	client kubernetes.Interface
	ledger *ledger
	image  string
	seed   uint64
	turns  chan struct{} // one for every write of a Deployment

	mu      sync.Mutex
	serial  int     // guarded by mu; makes every state another
	refused []error // guarded by mu: answers that were no acknowledgement
	dying   bool    // guarded by mu: from now on connections may break
}

// expectLoss is called before the server is killed.
func (w *writers) expectLoss() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dying = true
}

// run returns when ctx has ended, or any writer was refused.
func (w *writers) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.turns = make(chan struct{}, deploymentWriters)
	for range deploymentWriters {
		w.turns <- struct{}{}
	}
	var all sync.WaitGroup
	for i := range mapWriters {
		all.Go(func() {
			defer cancel()
			w.write(ctx, uint64(i), mapsEach, fmt.Sprintf("configmap/m%d-", i), w.configMap) //nolint:gosec // small
		})
	}
	for i := range deploymentWriters {
		all.Go(func() {
			defer cancel()
			w.write(ctx, uint64(mapWriters+i), deploymentsEach, fmt.Sprintf("deployment/d%d-", i), w.deployment) //nolint:gosec // small
		})
	}
	all.Wait()
}

// write brings objects of its own into new states, one after another: half of the
// existing ones are changed, some deleted, missing ones are made. It ends with the
// first request that has no good answer.
func (w *writers) write(ctx context.Context, stream uint64, objects int, prefix string, do func(ctx context.Context, name, from, to string, r *rand.Rand) error) {
	r := rand.New(rand.NewPCG(w.seed, stream)) //nolint:gosec // not a secret
	for ctx.Err() == nil {
		object := prefix + fmt.Sprint(r.IntN(objects))
		from, to := w.ledger.state(object), absent
		if from == absent || r.IntN(4) > 0 {
			to = w.next()
		}
		w.ledger.ask(object, to)
		if err := do(ctx, object, from, to, r); err != nil {
			w.refuse(object, err)
			return
		}
		w.ledger.answered(object, to)
	}
}

// next makes a state that no object has had.
func (w *writers) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serial++; w.serial%turnEvery == 0 {
		select {
		case w.turns <- struct{}{}:
		default: // they are busy
		}
	}
	return fmt.Sprintf("%x-%d", w.seed, w.serial)
}

// refuse notes what is not an acknowledgement, other than that the server is gone.
func (w *writers) refuse(object string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(err, context.Canceled) {
		return // another was refused, or the test ends
	}
	if !w.dying || isAnswer(err) {
		w.refused = append(w.refused, fmt.Errorf("%s: %w", object, err))
	}
}

func (w *writers) configMap(ctx context.Context, object, from, to string, _ *rand.Rand) error {
	maps := w.client.CoreV1().ConfigMaps(namespace)
	name := nameOf(object)
	if to == absent {
		return maps.Delete(ctx, name, metav1.DeleteOptions{})
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mark: to}}, Data: map[string]string{"state": to}}
	var err error
	if from == absent {
		_, err = maps.Create(ctx, cm, metav1.CreateOptions{})
	} else {
		_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
	}
	return err
}

// deployment makes one, scales it, gives it another template, or deletes it.
func (w *writers) deployment(ctx context.Context, object, from, to string, r *rand.Rand) error {
	deployments := w.client.AppsV1().Deployments(namespace)
	name := nameOf(object)
	select {
	case <-w.turns:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case to == absent:
		return deployments.Delete(ctx, name, metav1.DeleteOptions{})
	case from == absent:
		_, err := deployments.Create(ctx, pods(name, w.image, to, 1+r.Int32N(mostReplicas)), metav1.CreateOptions{})
		return err
	}
	d, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	replicas := r.Int32N(mostReplicas + 1)
	d.Labels[mark], d.Spec.Replicas = to, &replicas
	if r.IntN(2) == 0 {
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "STATE", Value: to}}
	}
	d.ResourceVersion = "" // the controller writes its status meanwhile
	_, err = deployments.Update(ctx, d, metav1.UpdateOptions{})
	return err
}

// pods is a Deployment whose containers note in a volume how often they started,
// and end when they are told to.
func pods(name, image, state string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{mark: state}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name: "c", Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
						Command:      []string{"sh", "-c", "echo started >> /data/starts; trap 'exit 0' TERM; sleep 100000 & wait"},
						VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
						ReadinessProbe: &corev1.Probe{
							PeriodSeconds: 1,
							ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-f", "/data/starts"}}},
						},
					}},
					Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
				},
			},
		},
	}
}
