package webhook

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/registry"
)

// dialTries is how many endpoints of a Service are tried, and dialTimeout how long each.
const (
	dialTries   = 3
	dialTimeout = 5 * time.Second
)

// Services reaches Services from inside the server.
type Services struct {
	Objects registry.Reader
	Metrics *measure.Metrics // of calls that belong to no request; may be nil
}

// Dial connects to a ready endpoint behind a Service's port; for an ExternalName to that name.
func (s Services) Dial(ctx context.Context, network, namespace, name string, port int32) (net.Conn, error) {
	addresses, err := s.addresses(namespace, name, port)
	if err != nil {
		return nil, err
	}
	rand.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	var failed error
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, address := range addresses[:min(len(addresses), dialTries)] {
		c, err := dialer.DialContext(ctx, network, address)
		if err == nil {
			return c, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

var (
	services       = corev1.SchemeGroupVersion.WithResource("services")
	endpointSlices = discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
)

func (s Services) addresses(namespace, name string, port int32) ([]string, error) {
	obj, err := s.Objects.Get(services, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("service %q not found", name)
	}
	service := obj.(*corev1.Service)
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return []string{net.JoinHostPort(service.Spec.ExternalName, strconv.Itoa(int(port)))}, nil
	}
	var wanted *corev1.ServicePort
	for i := range service.Spec.Ports {
		if service.Spec.Ports[i].Port == port {
			wanted = &service.Spec.Ports[i]
		}
	}
	if wanted == nil {
		return nil, fmt.Errorf("no service port %d found for service %q", port, name)
	}
	list, err := s.Objects.List(endpointSlices, namespace)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, obj := range list {
		slice := obj.(*discoveryv1.EndpointSlice)
		if slice.Labels[discoveryv1.LabelServiceName] != name || slice.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		for _, p := range slice.Ports {
			if p.Port == nil || p.Name != nil && *p.Name != wanted.Name || p.Name == nil && wanted.Name != "" {
				continue
			}
			for i := range slice.Endpoints {
				e := &slice.Endpoints[i]
				if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
					out = append(out, net.JoinHostPort(e.Addresses[0], strconv.Itoa(int(*p.Port))))
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no endpoints available for service %q", name)
	}
	return out, nil
}
