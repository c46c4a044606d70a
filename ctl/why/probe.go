package why

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"

	"github.com/periplus/periplus/insight/why"
)

// prober tries ports by port forwarding, which works wherever kubectl does.
type prober struct {
	config *restclient.Config
	client kubernetes.Interface
}

var _ why.Prober = (*prober)(nil)

// Listens implements why.Prober. On the pod's own machine its address is tried too.
func (p *prober) Listens(ctx context.Context, pod *corev1.Pod, port int32) error {
	if err := p.inside(ctx, pod, port); err != nil {
		return err
	}
	if pod.Spec.HostNetwork || !ownAddress(pod.Status.HostIP) {
		return nil // the address may belong to something else, from here
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))))
	if errors.Is(err, syscall.ECONNREFUSED) {
		return why.ErrLocalOnly
	}
	if err == nil {
		_ = conn.Close()
	}
	return nil
}

func ownAddress(ip string) bool {
	addrs, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(addrs, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.String() == ip
	})
}

// inside connects from within the pod. A connection that could not be tried counts as
// one that works: only a refusal is told.
func (p *prober) inside(ctx context.Context, pod *corev1.Pod, port int32) error {
	url := p.client.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(url, p.config)
	if err != nil {
		return nil //nolint:nilerr // not tried
	}
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil //nolint:nilerr // not tried
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	defer conn.Close() //nolint:errcheck // nothing is sent
	header := map[string][]string{
		corev1.StreamType:                 {corev1.StreamTypeError},
		corev1.PortHeader:                 {strconv.Itoa(int(port))},
		corev1.PortForwardRequestIDHeader: {"0"},
	}
	refused, err := conn.CreateStream(header)
	if err != nil {
		return nil //nolint:nilerr // not tried
	}
	_ = refused.Close() // nothing is written to it
	header[corev1.StreamType] = []string{corev1.StreamTypeData}
	data, err := conn.CreateStream(header)
	if err != nil {
		return nil //nolint:nilerr // not tried
	}
	_ = data.Close() // ends the connection from this side: what accepted it ends it too
	message, err := io.ReadAll(refused)
	if err == nil && strings.Contains(string(message), "refused") {
		return errors.New("connection refused")
	}
	return nil
}

// Resolves implements why.Prober.
func (p *prober) Resolves(ctx context.Context, name string) error {
	_, err := net.DefaultResolver.LookupHost(ctx, name)
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return err
	}
	return nil // no answer says nothing about the name
}
