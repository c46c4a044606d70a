package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/base/jointoken"
)

// ErrUntrusted is returned when a server is not the one that the token is for.
var ErrUntrusted = errors.New("the server is not the one that the token is for")

// infoPath is the ConfigMap that everybody may read.
const infoPath = "/api/v1/namespaces/kube-public/configmaps/cluster-info"

// patience is how long the signature of a token that was just made is awaited,
// again after pause.
const (
	patience = 5 * time.Second
	pause    = 250 * time.Millisecond
	maxInfo  = 1 << 20
)

// ParseServer checks the address of a server: https://HOST[:6443].
func ParseServer(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" {
		return nil, fmt.Errorf("server: %q is not allowed: must be an address like https://192.0.2.1:6443", s)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), "6443")
	}
	u.Path = ""
	return u, nil
}

// Discover returns the cluster's certificate authority as the server shows it, if
// the token vouches for it: by the hash in it, else by its signature.
func Discover(ctx context.Context, server *url.URL, token jointoken.Token) (ca []byte, err error) {
	deadline := time.Now().Add(patience)
	for {
		ca, err = discover(ctx, server, token)
		if !errors.Is(err, errNotSigned) && !errors.Is(err, errNotPublished) || time.Now().After(deadline) {
			return ca, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-timer.C:
		}
	}
}

// errNotPublished is returned by discover when there is no cluster-info.
var errNotPublished = errors.New("the server does not tell which authority it has (no kube-public/cluster-info): it is starting, or it is not of a cluster that machines can join")

// errNotSigned is returned by discover when cluster-info has no signature of the token.
var errNotSigned = errors.New("the server does not know the token, or it has expired")

func discover(ctx context.Context, server *url.URL, token jointoken.Token) ([]byte, error) {
	info, err := fetchInfo(ctx, server)
	if err != nil {
		return nil, err
	}
	content := info.Data["kubeconfig"]
	config, err := clientcmd.Load([]byte(content))
	if err != nil || len(config.Clusters) != 1 {
		return nil, fmt.Errorf("%s does not tell which authority it has (kube-public/cluster-info is damaged)", server)
	}
	var bundle []byte
	for _, c := range config.Clusters {
		bundle = c.CertificateAuthorityData
	}
	certs, err := jointoken.Certificates(bundle)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	if token.CAHash != "" {
		if !slices.ContainsFunc(certs, func(c *x509.Certificate) bool { return jointoken.HashOf(c) == token.CAHash }) {
			return nil, fmt.Errorf("%w: %s has the certificate authority %s, the token names %s. Either the token belongs to another cluster, or somebody stands between this machine and the server. Nothing was sent. Make a token with \"peri token create\" on the right server",
				ErrUntrusted, server, jointoken.HashOf(certs[0]), token.CAHash)
		}
		return bundle, nil
	}
	signature, ok := info.Data["jws-kubeconfig-"+token.ID]
	switch {
	case !ok:
		return nil, fmt.Errorf("token %s: %w. On a server, \"peri token list\" shows the tokens and \"peri token create\" makes one", token.ID, errNotSigned)
	case !jointoken.Verify(content, signature, token):
		return nil, fmt.Errorf("token %s: %w: the server knows a token of this ID with another secret. Copy the whole token, or make one with \"peri token create\" on a server. Nothing was sent", token.ID, ErrUntrusted)
	}
	return bundle, nil
}

// fetchInfo reads cluster-info from a server that is not known yet.
func fetchInfo(ctx context.Context, server *url.URL) (*corev1.ConfigMap, error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}} //nolint:gosec // what it says is verified by the token
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport, Timeout: 15 * time.Second}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.String()+infoPath, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := c.Do(request)
	if err != nil {
		return nil, unreachable(server, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusForbidden {
		return nil, fmt.Errorf("%s: %w", server, errNotPublished)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s to %s: is it the API server of a Periplus cluster, and ready?", server, answer.Status, infoPath)
	}
	var out corev1.ConfigMap
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxInfo)).Decode(&out); err != nil {
		return nil, fmt.Errorf("%s does not answer as an API server: %w", server, err)
	}
	return &out, nil
}

// unreachable explains why a server could not be asked.
func unreachable(server *url.URL, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	hint := "is a server running there, and is its port open?"
	if strings.Contains(err.Error(), "server gave HTTP response") {
		hint = "that is not an API server's port; it is 6443 by default"
	}
	return fmt.Errorf("cannot reach the server %s: %w: %s", server, err, hint)
}
