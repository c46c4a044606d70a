package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/test/netlab"
)

// A crowd is a server and a process with many nodes that exist only in the API.
type crowd struct {
	*bench
	cluster *cluster // without a registry
	fleet   *netlab.Peri
}

// measureHollow measures a server without a node of its own while a thousand nodes
// send heartbeats and ten thousand pods are scheduled to them, run, and go.
func measureHollow(ctx context.Context, b *bench) (err error) {
	m, err := b.newMachine()
	if err != nil {
		return err
	}
	c := &crowd{bench: b, cluster: &cluster{machine: m}}
	defer func() { err = errors.Join(err, m.Close()) }()
	if c.cluster.up, err = m.Server(ctx, "--disable-agent"); err != nil {
		return err
	}
	if c.cluster.client, err = c.cluster.newClient(); err != nil {
		return err
	}
	if err := c.cluster.makeNamespace(ctx); err != nil {
		return err
	}
	begin := time.Now()
	if c.fleet, err = m.Hollow(ctx, "--nodes", strconv.Itoa(b.nodes)); err != nil {
		return err
	}
	b.results.add(figure{Name: fmt.Sprintf("%d hollow nodes registered", b.nodes), Unit: "ms", Value: ms(time.Since(begin)), Note: "from the start of the process"})
	if err := c.quiet(ctx, fmt.Sprintf("%d hollow nodes", b.nodes)); err != nil {
		return err
	}
	if err := c.scaleTo(ctx, b.pods); err != nil {
		return err
	}
	if err := c.quiet(ctx, fmt.Sprintf("%d hollow nodes, %d pods", b.nodes, b.pods)); err != nil {
		return err
	}
	if err := c.scaleTo(ctx, 0); err != nil {
		return err
	}
	if err := wait(ctx, forgetful); err != nil {
		return err
	}
	return c.quiet(ctx, fmt.Sprintf("%d hollow nodes, %d pods have come and gone", b.nodes, b.pods))
}

// each measures the server and the process with the nodes.
func (c *crowd) each() (server, fleet usage, err error) {
	up, err := c.cluster.up.PID()
	if err != nil {
		return server, fleet, err
	}
	hollow, err := c.fleet.PID()
	if err != nil {
		return server, fleet, err
	}
	if server, err = measure([]int{up}); err != nil {
		return server, fleet, err
	}
	fleet, err = measure([]int{hollow})
	return server, fleet, err
}

// quiet measures both while nothing but heartbeats happens.
func (c *crowd) quiet(ctx context.Context, name string) error {
	if err := wait(ctx, c.settle); err != nil {
		return err
	}
	before, beforeFleet, err := c.each()
	if err != nil {
		return err
	}
	if err := wait(ctx, c.idle/2); err != nil {
		return err
	}
	after, afterFleet, err := c.each()
	if err != nil {
		return err
	}
	cpu := func(who string, before, after usage) {
		c.memory(name+": "+who, after, "", "")
		c.results.add(figure{Name: name + ": " + who + ", CPU", Unit: "%", Value: 100 * (after.CPU - before.CPU).Seconds() / (c.idle / 2).Seconds(), Note: "of a core, heartbeats only"})
	}
	cpu("server", before, after)
	cpu("nodes", beforeFleet, afterFleet)
	return nil
}

// scaleTo scales a Deployment and waits until that many are available, or all gone.
func (c *crowd) scaleTo(ctx context.Context, replicas int32) error {
	const name = "crowd"
	deployments := c.cluster.client.AppsV1().Deployments(namespace)
	before, beforeFleet, err := c.each()
	if err != nil {
		return err
	}
	begin := time.Now()
	_, err = deployments.Create(ctx, crowded(name, replicas), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = c.cluster.scale(ctx, name, replicas)
	}
	if err != nil {
		return err
	}
	w, err := deployments.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return err
	}
	defer w.Stop()
	reached := false
	for e := range w.ResultChan() {
		d, ok := e.Object.(*appsv1.Deployment)
		if reached = ok && d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == replicas && d.Status.AvailableReplicas == replicas; reached {
			break
		}
	}
	if !reached {
		return errors.Join(errors.New("the watch ended early"), context.Cause(ctx))
	}
	took := time.Since(begin)
	after, afterFleet, err := c.each()
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%d pods Ready on %d hollow nodes", replicas, c.nodes)
	if replicas == 0 {
		what = fmt.Sprintf("%d → 0 pods on hollow nodes", c.pods)
	}
	pods := float64(c.pods)
	c.results.add(figure{Name: what, Unit: "s", Value: took.Seconds(), Note: fmt.Sprintf("%.0f pods/s", pods/took.Seconds())})
	c.results.add(figure{
		Name: what + ", CPU per pod", Unit: "ms", Value: ms(after.CPU-before.CPU) / pods,
		Note: fmt.Sprintf("of the server with etcd; of the nodes' process %.2f", ms(afterFleet.CPU-beforeFleet.CPU)/pods),
	})
	c.memory(what, after, "", "")
	return nil
}

// crowded is a Deployment whose pods ask for little.
func crowded(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("100Mi")},
				}}}},
			},
		},
	}
}
