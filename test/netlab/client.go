package netlab

import (
	"context"
	"net"

	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// protobuf is the media type in which clients and servers exchange built-in kinds.
const protobuf = "application/vnd.kubernetes.protobuf"

// Dial connects this process to an address inside the machine, an IP and a port.
func (m *Machine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var c net.Conn
	err := m.Do(func() error {
		var err error
		c, err = new(net.Dialer).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// ClientConfig is how a client in this process reaches the cluster of the machine as
// its administrator, without a limit on its rate. The state directory must have its
// kubeconfig: peri writes it before it listens.
func (m *Machine) ClientConfig() (*restclient.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", m.Kubeconfig())
	if err != nil {
		return nil, err
	}
	// A function of its own for each configuration, so that client-go does not let
	// two of them share a connection.
	c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return m.Dial(ctx, network, address)
	}
	c.QPS = -1
	c.ContentType, c.AcceptContentTypes = protobuf, protobuf+",application/json"
	return c, nil
}
