package app

import (
	"context"
	"net"
	"slices"
	"strconv"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
)

// serversStage follows the endpoints of the Service default/kubernetes: they are
// the servers that an agent may speak to.
func (a *agent) serversStage() stage {
	return stage{name: "servers", run: func(ctx context.Context, ready func()) error {
		informer := a.worker.shared().Discovery().V1().EndpointSlices()
		look := func(obj any) {
			s, ok := obj.(*discoveryv1.EndpointSlice)
			if !ok || s.Namespace != metav1.NamespaceDefault || s.Labels[discoveryv1.LabelServiceName] != "kubernetes" {
				return
			}
			list, err := informer.Lister().EndpointSlices(metav1.NamespaceDefault).List(labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: "kubernetes"}))
			if err != nil {
				return
			}
			if addresses := endpointsOf(list); a.servers.Set(addresses) {
				log := a.worker.log
				log.Info("servers of the cluster", base.KeyAddress, addresses)
				if err := a.worker.config.saveServers(addresses); err != nil {
					log.Warn("the list of servers cannot be kept for the next start", base.KeyError, err)
				}
			}
		}
		registration, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }})
		if err != nil {
			return err
		}
		defer func() { _ = informer.Informer().RemoveEventHandler(registration) }()
		a.worker.shared().StartWithContext(ctx)
		if err := a.worker.config.saveServers(a.servers.List()); err != nil {
			return err
		}
		ready()
		<-ctx.Done()
		return nil
	}}
}

// endpointsOf lists the addresses of ready endpoints, sorted.
func endpointsOf(list []*discoveryv1.EndpointSlice) []string {
	var out []string
	for _, s := range list {
		for _, p := range s.Ports {
			if p.Port == nil {
				continue
			}
			for _, e := range s.Endpoints {
				if e.Conditions.Ready != nil && !*e.Conditions.Ready {
					continue
				}
				for _, address := range e.Addresses {
					out = append(out, net.JoinHostPort(address, strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
