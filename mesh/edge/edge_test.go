package edge_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/ca"
	"github.com/periplus/periplus/mesh/edge"
)

var quiet = slog.New(slog.DiscardHandler)

func authority(t *testing.T) *ca.Authority {
	t.Helper()
	a, err := ca.New()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func publisher(c kubernetes.Interface, a *ca.Authority) *edge.Publisher {
	return &edge.Publisher{Client: c, Certificates: ca.NewWorkload(a, edge.Identity), Root: a.Root(), Log: quiet}
}

func pod(name, account string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", Labels: labels}, Spec: corev1.PodSpec{ServiceAccountName: account}}
}

// secured asks an edge about a Service with two pods, of which one has a sidecar.
func secured(e interface {
	Secure(c *l7.Cluster, namespace, service string, port int32, endpoints []*l7.Endpoint)
}) (*l7.Cluster, []*l7.Endpoint) {
	c := &l7.Cluster{}
	endpoints := []*l7.Endpoint{
		{Metadata: map[string]string{"namespace": "shop", "pod": "inside"}},
		{Metadata: map[string]string{"namespace": "shop", "pod": "outside"}},
	}
	e.Secure(c, "shop", "web", 80, endpoints)
	return c, endpoints
}

// TestNode: what a server publishes is what a node's gateway calls pods with.
func TestNode(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset(
		pod("inside", "web", map[string]string{mesh.LabelTLS: mesh.TLSModeIstio}), pod("outside", "other", nil),
	)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changed, ended := make(chan struct{}, 100), make(chan error, 2)
	published, err := c.CoreV1().Secrets(edge.SecretNamespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a := authority(t)
	go func() { ended <- publisher(c, a).Run(ctx) }()
	<-published.ResultChan()
	published.Stop()
	c.ClearActions()

	// Nothing is followed before the gateway has a backend.
	f := edge.NewFollower(c, quiet)
	go func() { ended <- f.Run(ctx, func() { changed <- struct{}{} }) }()
	if len(c.Actions()) != 0 {
		t.Errorf("requests before there is a backend: %v", c.Actions())
	}
	if cluster, _ := secured(f); cluster.TransportMatches != nil {
		t.Error("mutual TLS before anything is known")
	}

	var cluster *l7.Cluster
	var endpoints []*l7.Endpoint
	for cluster == nil || cluster.TransportMatches == nil {
		select {
		case <-changed:
			cluster, endpoints = secured(f)
		case err := <-ended:
			t.Fatal("ended", err)
		}
	}
	if endpoints[0].Metadata[mesh.MetadataTLSMode] != mesh.TLSModeIstio || endpoints[1].Metadata[mesh.MetadataTLSMode] != "" {
		t.Errorf("endpoints %v, %v: only the first has a sidecar", endpoints[0].Metadata, endpoints[1].Metadata)
	}
	secure := cluster.TransportMatches[0].TLS
	if want := []string{"spiffe://cluster.local/ns/shop/sa/web"}; !slices.Equal(secure.SubjectAltNames, want) {
		t.Errorf("peers %q, want %q", secure.SubjectAltNames, want)
	}
	cert, err := secure.Certificates.Certificate("")
	if err != nil {
		t.Fatal(err)
	}
	if got := cert.Leaf.URIs[0].String(); got != "spiffe://cluster.local/ns/istio-system/sa/periplus-ingress" {
		t.Errorf("the edge is %q", got)
	}
	roots, err := secure.Roots.Roots()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestRenewal: half of its life over, a certificate is replaced; before that, another
// server leaves it as it is.
func TestRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, a := fake.NewClientset(), authority(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		read := func() []byte {
			synctest.Wait()
			s, err := c.CoreV1().Secrets(edge.SecretNamespace).Get(ctx, edge.SecretName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return s.Data[corev1.TLSCertKey]
		}
		run := func() { go func() { _ = publisher(c, a).Run(ctx) }() }
		run()
		first := read()
		run()
		if !bytes.Equal(read(), first) {
			t.Error("a second server has replaced what the first has published")
		}
		time.Sleep(11 * time.Hour)
		if !bytes.Equal(read(), first) {
			t.Error("replaced after 11 of 24 hours")
		}
		time.Sleep(2 * time.Hour)
		if bytes.Equal(read(), first) {
			t.Error("not replaced after 13 of 24 hours")
		}
		// Another authority: its certificates only.
		a = authority(t)
		second := read()
		run()
		if bytes.Equal(read(), second) {
			t.Error("the certificate of another authority is still there")
		}
		cancel()
		synctest.Wait()
	})
}

// TestAllowNodes: nodes may read the one Secret, also when that was said before.
func TestAllowNodes(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset()
	for range 2 {
		if err := edge.AllowNodes(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	roles, err := c.RbacV1().Roles(edge.SecretNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(roles.Items) != 1 || !slices.Equal(roles.Items[0].Rules[0].ResourceNames, []string{edge.SecretName}) {
		t.Errorf("roles %v, %v", roles, err)
	}
	if _, err := c.CoreV1().Secrets(edge.SecretNamespace).Get(t.Context(), edge.SecretName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret without a mesh: %v", err)
	}
}
