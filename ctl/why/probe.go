package why

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"

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

// Listens implements why.Prober. A connection that could not be tried counts as one
// that works: only a refusal is told.
func (p *prober) Listens(ctx context.Context, namespace, pod string, port int32) error {
	url := p.client.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("portforward").URL()
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
