package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/test/images"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

const (
	nodeName  = "bench"
	namespace = "bench"
	// stopTimeout bounds the end of a peri.
	stopTimeout = 30 * time.Second
)

// A cluster runs in a machine, with a registry in it that has one image: a web
// server that starts in no time.
type cluster struct {
	machine  *netlab.Machine
	registry *registry.Registry
	image    string
	up       *netlab.Peri
	client   kubernetes.Interface
}

// newMachine makes one for a peri.
func (b *bench) newMachine() (*netlab.Machine, error) {
	return netlab.New(netlab.Config{Peri: b.peri, Name: nodeName})
}

// open returns the shared cluster, started when the first part needs it.
func (b *bench) open(ctx context.Context) (*cluster, error) {
	if b.cluster != nil {
		return b.cluster, nil
	}
	m, err := b.newMachine()
	if err != nil {
		return nil, err
	}
	c := &cluster{machine: m}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	b.cluster = c
	return c, nil
}

func (c *cluster) start(ctx context.Context) error {
	l, err := c.machine.Listen(ctx, "tcp", "127.0.0.1:5000")
	if err != nil {
		return err
	}
	c.registry = registry.Serve(l)
	// The first process of a container dies of no signal that it does not handle.
	img, err := images.Busybox("sh", "-c", "trap 'exit 0' TERM; httpd -f -p 8080 -h /etc & wait")
	if err != nil {
		return err
	}
	if c.image, err = c.registry.Push(ctx, "web:1", img); err != nil {
		return err
	}
	if c.up, err = c.machine.Up(ctx); err != nil {
		return err
	}
	if c.client, err = c.newClient(); err != nil {
		return err
	}
	return c.makeNamespace(ctx)
}

// newClient makes a client with a connection of its own.
func (c *cluster) newClient() (*kubernetes.Clientset, error) {
	config, err := c.machine.ClientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// makeNamespace returns when pods can be made in it: with its service account.
func (c *cluster) makeNamespace(ctx context.Context) error {
	_, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	w, err := c.client.CoreV1().ServiceAccounts(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
	if err != nil {
		return err
	}
	defer w.Stop()
	select {
	case <-w.ResultChan():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// usage measures peri and its monitor.
func (c *cluster) usage() (usage, error) {
	pids, err := c.machine.Processes()
	if err != nil {
		return usage{}, err
	}
	return measure(pids)
}

// close ends the cluster; what still runs in the machine ends with it.
func (c *cluster) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return errors.Join(c.up.Stop(ctx), c.machine.Close())
}

// pods calls see for every change of the pods with a label "app" until it returns
// true. The channel tells how that ended.
func (c *cluster) pods(ctx context.Context, app string, see func(watch.EventType, *corev1.Pod) bool) (<-chan error, error) {
	w, err := c.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		defer w.Stop()
		for e := range w.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				done <- fmt.Errorf("watch pods: %w", apierrors.FromObject(e.Object))
				return
			}
			if see(e.Type, pod) {
				done <- nil
				return
			}
		}
		done <- errors.Join(errors.New("watch pods: ended early"), context.Cause(ctx))
	}()
	return done, nil
}

// ready reports whether a pod has been found ready to serve.
func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
