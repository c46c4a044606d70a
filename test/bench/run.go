package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
)

// A journey is the time from the first request to each step.
type journey struct {
	created time.Duration // Deployment and Service are acknowledged
	ready   time.Duration // a watcher sees the pod Ready
	answer  time.Duration // the Service has answered 200
	gone    time.Duration // from the deletion until the pod is gone
}

// measureRuns makes a Deployment and a Service as "peri run --expose" does, waits
// for the first answer, and deletes them, one after another.
func measureRuns(ctx context.Context, b *bench) error {
	c, err := b.open(ctx)
	if err != nil {
		return err
	}
	// The first one pulls the image.
	if _, err := c.journey(ctx, "pull"); err != nil {
		return err
	}
	var created, readies, answers, gone []time.Duration
	for i := range b.runs {
		j, err := c.journey(ctx, "run-"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		created, readies = append(created, j.created), append(readies, j.ready)
		answers, gone = append(answers, j.answer), append(gone, j.gone)
	}
	b.results.durations("run → objects created", created, "", "")
	b.results.durations("run → pod Ready", readies, "", "695 ms (to Running)")
	b.results.durations("run → first answer", answers, "< 200 ms", "")
	b.results.durations("delete → pod gone", gone, "", "1000 ms")
	return nil
}

func (c *cluster) journey(ctx context.Context, name string) (journey, error) {
	var j journey
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	deployment, service := c.workload(name, 1), c.service(name)
	var pod string
	isReady, err := c.pods(ctx, name, func(_ watch.EventType, p *corev1.Pod) bool {
		pod = p.Name
		return ready(p)
	})
	if err != nil {
		return j, err
	}
	begin := time.Now()
	if _, err := c.client.AppsV1().Deployments(namespace).Create(ctx, deployment, metav1.CreateOptions{}); err != nil {
		return j, err
	}
	if service, err = c.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return j, err
	}
	j.created = time.Since(begin)
	answered := make(chan error, 1)
	go func() {
		err := c.firstAnswer(ctx, net.JoinHostPort(service.Spec.ClusterIP, "80"))
		j.answer = time.Since(begin)
		answered <- err
	}()
	if err := <-isReady; err != nil {
		return j, fmt.Errorf("%s: pod Ready: %w", name, err)
	}
	j.ready = time.Since(begin)
	if err := <-answered; err != nil {
		return j, fmt.Errorf("%s: first answer: %w", name, err)
	}
	isGone, err := c.pods(ctx, name, func(t watch.EventType, p *corev1.Pod) bool { return t == watch.Deleted && p.Name == pod })
	if err != nil {
		return j, err
	}
	begin = time.Now()
	if err := c.client.AppsV1().Deployments(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return j, err
	}
	if err := c.client.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return j, err
	}
	if err := <-isGone; err != nil {
		return j, fmt.Errorf("%s: pod gone: %w", name, err)
	}
	j.gone = time.Since(begin)
	return j, nil
}

// firstAnswer returns when the address has answered a request with 200. It tries
// from a thread inside the machine, again every millisecond.
func (c *cluster) firstAnswer(ctx context.Context, address string) error {
	return c.machine.Do(func() error {
		dialer := net.Dialer{Timeout: time.Second}
		return retry(ctx, time.Millisecond, func() bool {
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return false
			}
			defer conn.Close()
			if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
				return false
			}
			if _, err := io.WriteString(conn, "GET /passwd HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n"); err != nil {
				return false
			}
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				return false
			}
			_ = r.Body.Close()
			return r.StatusCode == http.StatusOK
		})
	})
}

// workload is a Deployment of the web server. It ends at once when told to.
func (c *cluster) workload(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	grace := int64(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: &grace,
					Containers: []corev1.Container{{
						Name: "web", Image: c.image, ImagePullPolicy: corev1.PullIfNotPresent, Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
					}},
				},
			},
		},
	}
}

func (c *cluster) service(name string) *corev1.Service {
	labels := map[string]string{"app": name}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}
}
