package apitest

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/controllers"
	controllersall "github.com/periplus/periplus/controllers/all"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/scheduler"
	schedulerall "github.com/periplus/periplus/scheduler/all"
)

// components runs the controllers and the scheduler, if any. It closes ready when the
// API server is ready and they have begun.
func (s *server) components(ctx context.Context, e *Environment, ready chan<- struct{}) error {
	select {
	case <-s.api.Ready():
	case <-ctx.Done():
		return nil
	}
	if len(e.Controllers) == 0 && !e.Scheduler {
		close(ready)
		<-ctx.Done()
		return nil
	}
	config := s.api.ClientConfig("system:kube-controller-manager", "system:masters")
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	shared := client.NewFactory(c, s.api.Source())
	defer shared.Shutdown()
	var parts []base.Component
	if len(e.Controllers) > 0 {
		list, err := controllers.Select(controllersall.Controllers(), e.Controllers)
		if err != nil {
			return err
		}
		parts = append(parts, base.Component{Name: "controllers", Run: func(ctx context.Context) error { return s.control(ctx, c, config, shared, list) }})
	}
	if e.Scheduler {
		parts = append(parts, base.Component{Name: "scheduler", Run: func(ctx context.Context) error { return s.schedule(ctx, shared) }})
	}
	close(ready)
	if err := base.RunAll(ctx, parts...); ctx.Err() == nil {
		return err
	}
	return nil // what was just beginning may find that it has ended
}

func (s *server) control(ctx context.Context, c kubernetes.Interface, config *rest.Config, shared informers.SharedInformerFactory, list []controllers.Controller) error {
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.CoreV1().Events("")})
	return controllers.Run(ctx, &controllers.Env{
		Client: c, Informers: shared, Metadata: meta, Objects: s.api, ConfigFor: func(string) *rest.Config { return config }, Events: broadcaster,
		Log: s.log.With(base.KeyComponent, "controllers"),
		Options: controllers.Options{
			ClusterCIDRs: []string{"10.42.0.0/16"}, ServiceCIDRs: []string{serviceCIDR}, RootCA: s.ca.PEM, SigningCert: s.ca.PEM, SigningKey: s.ca.KeyPEM(),
		},
	}, list)
}

func (s *server) schedule(ctx context.Context, shared informers.SharedInformerFactory) error {
	c, err := kubernetes.NewForConfig(s.api.ClientConfig("system:kube-scheduler"))
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	sched, err := scheduler.New(scheduler.Config{
		Client: c, Informers: shared, Journey: journey.Discard, Profiles: schedulerall.Profiles(), Recorder: broadcaster.NewRecorder(scheme.Scheme, scheduler.DefaultName),
	})
	if err != nil {
		return err
	}
	return sched.Run(ctx)
}
