package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/l7"
)

// A Build collects what sources want. It is used by one goroutine.
type Build struct {
	// HTTPPort and HTTPSPort are those of Ingress.
	HTTPPort, HTTPSPort int

	ctx     context.Context //nolint:containedctx // of this build
	objects *objects
	limits  *limits
	ports   map[int]*Port

	first  bool   // since this process began
	steps  *steps // nil: nobody wants to know
	traced map[types.UID]traced
	routes map[answerKey]bool

	clusters  map[string]*l7.Cluster
	endpoints map[string][]*l7.Endpoint
	// What was asked for: only changes of these matter.
	services map[types.NamespacedName]bool
	secrets  map[types.NamespacedName]bool
}

// objects are the listers of a Build.
type objects struct {
	services corelisters.ServiceLister
	slices   cache.Indexer // by bySlice
	secrets  secrets
	mesh     Mesh // nil: none
}

// bySlice is the index of EndpointSlices by their Service.
const bySlice = "periplus.io/service"

func sliceService(obj any) ([]string, error) {
	s, ok := obj.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, nil
	}
	if name := s.Labels[discoveryv1.LabelServiceName]; name != "" {
		return []string{s.Namespace + "/" + name}, nil
	}
	return nil, nil
}

func newBuild(ctx context.Context, o *objects, l *limits, http, https int) *Build {
	return &Build{
		HTTPPort: http, HTTPSPort: https, ctx: ctx, objects: o, limits: l, ports: map[int]*Port{},
		clusters: map[string]*l7.Cluster{}, endpoints: map[string][]*l7.Endpoint{},
		services: map[types.NamespacedName]bool{}, secrets: map[types.NamespacedName]bool{},
	}
}

// trace lets the build tell the journeys of its objects.
func (b *Build) trace(s *steps) {
	b.steps, b.traced, b.routes = s, map[types.UID]traced{}, map[answerKey]bool{}
}

// Reasons why a backend cannot be used.
var (
	// ErrNoService is wrapped when there is no such Service.
	ErrNoService = errors.New("service not found")
	// ErrNoPort is wrapped when the Service has no such port.
	ErrNoPort = errors.New("service has no such port")
	// ErrNoSecret is wrapped when there is no such Secret.
	ErrNoSecret = errors.New("secret not found")
)

// A ServicePort names a port of a Service by number or by name.
type ServicePort struct {
	Number int32
	Name   string
}

func (p ServicePort) String() string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprint(p.Number)
}

// Service returns a Service and the port that is meant; remembered as asked for.
func (b *Build) Service(namespace, name string, port ServicePort) (*corev1.Service, *corev1.ServicePort, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	b.services[key] = true
	s, err := b.objects.services.Services(namespace).Get(name)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = ErrNoService
		}
		return nil, nil, fmt.Errorf("%s: %w", key, err)
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if port.Name != "" && p.Name == port.Name || port.Name == "" && p.Port == port.Number {
			return s, p, nil
		}
	}
	return s, nil, fmt.Errorf("%s port %s: %w", key, port, ErrNoPort)
}

// Cluster returns the name of the cluster for a Service's port. options are what
// differs from one user of the Service to another: suffix tells their clusters apart.
func (b *Build) Cluster(namespace, name string, port ServicePort, suffix string, options l7.Cluster) (string, error) {
	s, p, err := b.Service(namespace, name, port)
	if err != nil {
		return "", err
	}
	cluster := fmt.Sprintf("%s/%s:%d", namespace, name, p.Port)
	if suffix != "" {
		cluster += "|" + suffix
	}
	if b.clusters[cluster] != nil {
		return cluster, nil
	}
	if options.Protocol == l7.ProtocolHTTP1 {
		options.Protocol = appProtocol(p)
	}
	options.Metadata = map[string]string{"namespace": namespace, "service": name}
	b.clusters[cluster] = &options
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		b.endpoints[cluster] = []*l7.Endpoint{{Address: fmt.Sprintf("%s:%d", s.Spec.ExternalName, p.Port), Hostname: s.Spec.ExternalName}}
	} else {
		b.endpoints[cluster] = b.endpointsOf(namespace, name, p)
		if b.objects.mesh != nil {
			b.objects.mesh.Secure(&options, namespace, name, p.Port, b.endpoints[cluster])
		}
	}
	return cluster, nil
}

// appProtocol is what the Service says about its port (KEP-3726).
func appProtocol(p *corev1.ServicePort) l7.Protocol {
	if p.AppProtocol == nil {
		return l7.ProtocolHTTP1
	}
	switch *p.AppProtocol {
	case "kubernetes.io/h2c", "grpc":
		return l7.ProtocolHTTP2
	default:
		return l7.ProtocolHTTP1
	}
}

// endpointsOf reads the slices of a Service: those that are ready, and those that
// still serve while they end, for when there are no others.
func (b *Build) endpointsOf(namespace, name string, p *corev1.ServicePort) []*l7.Endpoint {
	found, err := b.objects.slices.ByIndex(bySlice, namespace+"/"+name)
	if err != nil {
		return nil
	}
	var out []*l7.Endpoint
	seen := map[string]bool{}
	for _, obj := range found {
		s, ok := obj.(*discoveryv1.EndpointSlice)
		if !ok || s.AddressType == discoveryv1.AddressTypeFQDN {
			continue
		}
		port, ok := slicePort(s, p)
		if !ok {
			continue
		}
		for i := range s.Endpoints {
			e := &s.Endpoints[i]
			health := l7.Healthy
			if e.Conditions.Ready != nil && !*e.Conditions.Ready {
				if e.Conditions.Serving == nil || !*e.Conditions.Serving {
					continue
				}
				health = l7.Draining
			}
			if len(e.Addresses) == 0 {
				continue
			}
			address := joinHostPort(e.Addresses[0], port)
			if seen[address] {
				continue
			}
			seen[address] = true
			endpoint := &l7.Endpoint{Address: address, Health: health}
			if e.Zone != nil {
				endpoint.Locality = *e.Zone
			}
			if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
				endpoint.Metadata = map[string]string{"pod": e.TargetRef.Name, "namespace": e.TargetRef.Namespace}
			}
			out = append(out, endpoint)
		}
	}
	slices.SortFunc(out, func(a, b *l7.Endpoint) int {
		switch {
		case a.Address < b.Address:
			return -1
		case a.Address > b.Address:
			return 1
		}
		return 0
	})
	return out
}

func slicePort(s *discoveryv1.EndpointSlice, p *corev1.ServicePort) (int32, bool) {
	for _, sp := range s.Ports {
		name := ""
		if sp.Name != nil {
			name = *sp.Name
		}
		if name == p.Name && sp.Port != nil && (sp.Protocol == nil || *sp.Protocol == corev1.ProtocolTCP) {
			return *sp.Port, true
		}
	}
	return 0, false
}

// Secret returns a Secret; remembered as asked for.
func (b *Build) Secret(namespace, name string) (*corev1.Secret, error) {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	b.secrets[key] = true
	s, err := b.objects.secrets.get(b.ctx, key)
	if apierrors.IsNotFound(err) {
		err = ErrNoSecret
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return s, nil
}

// Certificate returns the key pair of a Secret of the type kubernetes.io/tls.
func (b *Build) Certificate(namespace, name string) (*Certificate, error) {
	s, err := b.Secret(namespace, name)
	if err != nil {
		return nil, err
	}
	return parseCertificate(s)
}

func joinHostPort(host string, port int32) string {
	if slices.Contains([]byte(host), ':') {
		return fmt.Sprintf("[%s]:%d", host, port)
	}
	return fmt.Sprintf("%s:%d", host, port)
}
