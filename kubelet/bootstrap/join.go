package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/base/jointoken"
)

// joinTimeout bounds the whole of Join.
const joinTimeout = time.Minute

// ConfigMapName is the ConfigMap in kube-system that tells nodes how the cluster
// is set up, under the key ConfigKey, as JSON.
const (
	ConfigMapName = "periplus-config"
	ConfigKey     = "cluster.json"
)

// Options say who joins what.
type Options struct {
	Server *url.URL
	Token  jointoken.Token
	Node   string
	// Life of certificates; 0: the server's default, a year.
	Life time.Duration
}

// A Membership is what a join gives.
type Membership struct {
	CA     []byte // PEM
	Client Pair   // of system:node:<name>
	// Cluster is how the cluster is set up, as the server wrote it.
	Cluster json.RawMessage
}

// Join gets a node's first certificate. It changes nothing on this machine.
func Join(ctx context.Context, o Options) (*Membership, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, joinTimeout, errors.New("the server did not answer within a minute"))
	defer cancel()
	ca, err := Discover(ctx, o.Server, o.Token)
	if err != nil {
		return nil, err
	}
	c, err := kubernetes.NewForConfig(&restclient.Config{
		Host: o.Server.String(), BearerToken: o.Token.Bearer(), UserAgent: "peri/join", QPS: -1,
		TLSClientConfig: restclient.TLSClientConfig{CAData: ca}, Timeout: joinTimeout, WarningHandler: restclient.NoWarnings{},
	})
	if err != nil {
		return nil, err
	}
	config, err := c.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if err != nil {
		return nil, refused(o, "read how the cluster is set up", err)
	}
	if err := free(ctx, c, o); err != nil {
		return nil, err
	}
	pair, err := obtain(ctx, c, clientOf(o.Node, o.Life))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, refused(o, "get a certificate for node "+o.Node, err)
	}
	return &Membership{CA: ca, Client: pair, Cluster: json.RawMessage(config.Data[ConfigKey])}, nil
}

// free checks that no living node has the name: two would take turns in one object.
func free(ctx context.Context, c kubernetes.Interface, o Options) error {
	n, err := c.CoreV1().Nodes().Get(ctx, o.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return refused(o, "look whether the node's name is free", err)
	}
	for _, x := range n.Status.Conditions {
		if x.Type == corev1.NodeReady && x.Status == corev1.ConditionTrue {
			return fmt.Errorf("a node with the name %q and status Ready is in the cluster already: choose another --node-name, or take that node away first (kubectl delete node %s)", o.Node, o.Node)
		}
	}
	return nil
}

// refused explains an answer of the server.
func refused(o Options, what string, err error) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the server %s does not accept token %s: it is unknown there, has another secret or has expired. On a server, \"peri token list\" shows the tokens and \"peri token create\" makes one", o.Server, o.Token.ID)
	}
	return fmt.Errorf("join %s: %s: %w", o.Server, what, err)
}
