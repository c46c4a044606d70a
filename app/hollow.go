package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/base/garbage"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/hollow"
	"github.com/periplus/periplus/kubelet/bootstrap"
)

// HollowOptions say which nodes that exist only in the API there are, and where.
type HollowOptions struct {
	hollow.Config
	// Kubeconfig is of somebody who may write nodes, leases and pods; empty: found as
	// kubectl does. With Server and Token the nodes join as agents do instead, each
	// with a certificate of its own.
	Kubeconfig, Server, Token string
}

// Hollow runs such nodes until ctx ends. ready is called when all are registered.
func Hollow(ctx context.Context, o *HollowOptions, log *slog.Logger, ready func()) error {
	garbage.Tune()
	o.Log = log
	if err := o.Validate(); err != nil {
		return err
	}
	if (o.Server == "") != (o.Token == "") {
		return errors.New("server and token: give both, or neither and a kubeconfig")
	}
	var err error
	switch {
	case o.Server == "":
		err = o.byKubeconfig()
	case o.Kubeconfig != "":
		return errors.New("kubeconfig: not together with server and token")
	default:
		err = o.byToken(ctx)
	}
	if err != nil {
		return err
	}
	fleet, err := hollow.New(o.Config)
	if err != nil {
		return err
	}
	return fleet.Run(ctx, ready)
}

func (o *HollowOptions) byKubeconfig() error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	own := client.ServersConfig(nil, "hollow")
	config.UserAgent, config.QPS, config.ContentConfig, config.WarningHandler = own.UserAgent, own.QPS, own.ContentConfig, own.WarningHandler
	o.Client, err = kubernetes.NewForConfig(config)
	return err
}

// byToken lets every node get a certificate of its own and write with it, over a
// connection of its own. The first one reads for all.
func (o *HollowOptions) byToken(ctx context.Context) error {
	server, err := bootstrap.ParseServer(o.Server)
	if err != nil {
		return err
	}
	token, err := (&Config{Token: o.Token}).joinToken()
	if err != nil {
		return err
	}
	// A node may not delete itself.
	o.Keep = true
	join := func(node string) (kubernetes.Interface, error) {
		m, err := bootstrap.Join(ctx, bootstrap.Options{Server: server, Token: token, Node: node})
		if err != nil {
			return nil, err
		}
		config, err := memberConfig(server.Host, m)
		if err != nil {
			return nil, err
		}
		return kubernetes.NewForConfig(config)
	}
	first := fmt.Sprintf("%s-%d", o.Prefix, o.First)
	if o.Client, err = join(first); err != nil {
		return err
	}
	o.Connect = func(node string) (kubernetes.Interface, error) {
		if node == first {
			return o.Client, nil
		}
		return join(node)
	}
	return nil
}

// memberConfig is how a node that has just joined speaks to its server.
func memberConfig(server string, m *bootstrap.Membership) (*restclient.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(m.CA) {
		return nil, errors.New("the cluster's authority is damaged")
	}
	pair, err := tls.X509KeyPair(m.Client.Cert, m.Client.Key)
	if err != nil {
		return nil, err
	}
	transport := client.NewServers(server).Transport(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}})
	return client.ServersConfig(transport, "hollow"), nil
}
