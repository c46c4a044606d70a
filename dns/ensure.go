package dns

import (
	"context"
	"fmt"
	"maps"
	"net/netip"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Where the Service of the cluster DNS is.
const (
	ServiceNamespace = metav1.NamespaceSystem
	ServiceName      = "kube-dns"
)

// nodeLocal is the annotation of Services that a process on every node answers
// at the cluster IP itself; the proxy makes no rules for them.
const nodeLocal = "periplus.io/node-local"

// Ensure creates or corrects the Service kube-system/kube-dns, which holds the
// address. Labels and annotations of others stay; a Service with another cluster
// IP is replaced, since it cannot be changed. The namespace must be there.
func Ensure(ctx context.Context, client kubernetes.Interface, address netip.Addr) error {
	want := desired(address.Unmap())
	services := client.CoreV1().Services(ServiceNamespace)
	// Several servers of one cluster may do this at the same time.
	again := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && ctx.Err() == nil
	}
	err := retry.OnError(retry.DefaultRetry, again, func() error {
		have, err := services.Get(ctx, ServiceName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = services.Create(ctx, want, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		if have.Spec.ClusterIP != want.Spec.ClusterIP {
			err := services.Delete(ctx, ServiceName, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
			if err != nil {
				return err
			}
			_, err = services.Create(ctx, want, metav1.CreateOptions{})
			return err
		}
		fixed := correct(have, want)
		if equality.Semantic.DeepEqual(have, fixed) {
			return nil
		}
		_, err = services.Update(ctx, fixed, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("service %s/%s with cluster IP %s: %w", ServiceNamespace, ServiceName, address, err)
	}
	return nil
}

func desired(address netip.Addr) *v1.Service {
	port := func(name string, protocol v1.Protocol) v1.ServicePort {
		return v1.ServicePort{Name: name, Protocol: protocol, Port: 53, TargetPort: intstr.FromInt32(53)}
	}
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ServiceNamespace, Name: ServiceName,
			Annotations: map[string]string{nodeLocal: "true"},
			Labels: map[string]string{
				"k8s-app": "kube-dns", "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS",
			},
		},
		Spec: v1.ServiceSpec{
			Type: v1.ServiceTypeClusterIP, ClusterIP: address.String(), ClusterIPs: []string{address.String()},
			Ports: []v1.ServicePort{port("dns", v1.ProtocolUDP), port("dns-tcp", v1.ProtocolTCP)},
		},
	}
}

// correct returns a copy of a Service with what we care about as it should be.
func correct(have, want *v1.Service) *v1.Service {
	s := have.DeepCopy()
	merge := func(into *map[string]string, from map[string]string) {
		if *into == nil {
			*into = map[string]string{}
		}
		maps.Copy(*into, from)
	}
	merge(&s.Annotations, want.Annotations)
	merge(&s.Labels, want.Labels)
	s.Spec.Type = want.Spec.Type
	s.Spec.Selector = nil
	ports := make([]v1.ServicePort, len(want.Spec.Ports))
	copy(ports, want.Spec.Ports)
	s.Spec.Ports = ports
	return s
}
