package app

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/journey/answer"
)

// answersStage ends the journey of each pod of this node: it records when the
// pod answered its first request.
func (w *worker) answersStage(after ...string) stage {
	return stage{name: "answers", after: after, run: func(ctx context.Context, ready func()) error {
		a := &answers{record: w.record, log: w.log.With(base.KeyComponent, "answers"), node: w.config.NodeName, waiting: map[netip.Addr]*corev1.Pod{}, done: map[string]bool{}}
		watcher, err := answer.New(answer.Config{OnAnswer: a.answered, Log: w.log.With(base.KeyComponent, "answers")})
		if err != nil {
			return err
		}
		a.watcher = watcher
		config, err := w.connect("kubelet")
		if err != nil {
			return err
		}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		pods := w.pods(c)
		if _, err := pods.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, first bool) { a.seen(obj, first) },
			UpdateFunc: func(_, obj any) { a.seen(obj, false) },
			DeleteFunc: a.gone,
		}); err != nil {
			return err
		}
		ready()
		return base.RunAll(ctx,
			base.Component{Name: "first answers", Run: watcher.Run},
			base.Component{Name: "pods", Run: func(ctx context.Context) error { pods.RunWithContext(ctx); return nil }},
		)
	}}
}

// answers knows which pods have not answered yet.
type answers struct {
	log     *slog.Logger
	record  journey.Recorder
	node    string
	watcher *answer.Watcher

	mu      sync.Mutex
	waiting map[netip.Addr]*corev1.Pod
	done    map[string]bool // by UID: pods that need not be watched any more
}

// seen watches a pod that has become ready. Pods that were ready before this
// process started have answered long ago.
func (a *answers) seen(obj any, first bool) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.HostNetwork || !conditions.PodReady(pod) {
		return
	}
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return
	}
	a.mu.Lock()
	known := a.done[string(pod.UID)]
	a.done[string(pod.UID)] = true
	if !known && !first {
		a.waiting[ip] = pod
	}
	a.mu.Unlock()
	if !known && !first {
		if err := a.watcher.Watch(ip); err != nil {
			a.log.Debug("the first answer of a pod will not be noticed", "ip", ip, base.KeyError, err)
		}
	}
}

func (a *answers) gone(obj any) {
	if t, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = t.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	a.mu.Lock()
	delete(a.done, string(pod.UID))
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	waiting := err == nil && a.waiting[ip] != nil && a.waiting[ip].UID == pod.UID
	if waiting {
		delete(a.waiting, ip)
	}
	a.mu.Unlock()
	if waiting {
		a.watcher.Unwatch(ip)
	}
}

func (a *answers) answered(ip netip.Addr, at time.Time) {
	a.mu.Lock()
	pod := a.waiting[ip]
	delete(a.waiting, ip)
	a.mu.Unlock()
	if pod == nil {
		return
	}
	s := journey.Step("network", "first answered request", "Pod", pod, at)
	s.End, s.Node = at, a.node
	a.record.Record(s)
}
