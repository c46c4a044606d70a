package app

import (
	"crypto/ecdsa"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/pki"
)

// identities are the certificates of a cluster on one machine.
//
//	ca ──┬── apiserver          server: the API
//	     ├── admin              client: the administrator's kubeconfig
//	     ├── kubelet            server: the kubelet's API
//	     ├── node, controller-manager, scheduler, proxy
//	     └── apiserver-kubelet  client: the API server towards kubelets
//	front-proxy-ca ── front-proxy-client: the API server towards extension API servers
type identities struct {
	ca         *pki.Authority
	accounts   *ecdsa.PrivateKey // signs service account tokens
	apiserver  *pki.Leaf
	kubelet    *pki.Leaf
	toKubelets *pki.Leaf
	proxyCA    *pki.Authority       // of front proxies
	proxy      *pki.Leaf            // the API server towards extension API servers
	member     *pki.Leaf            // of etcd towards its peers; nil on a single server
	clients    map[string]*pki.Leaf // by the names of clientNames
}

// clientNames are the components that have client certificates: user and group.
func clientNames(node string) map[string]pki.Request {
	client := func(user string, groups ...string) pki.Request {
		return pki.Request{CommonName: user, Organizations: groups, Client: true}
	}
	return map[string]pki.Request{
		"admin":              client("periplus-admin", "system:masters"),
		"controller-manager": client("system:kube-controller-manager"),
		"scheduler":          client("system:kube-scheduler"),
		"kubelet":            client("system:node:"+node, "system:nodes"),
		"proxy":              client("system:kube-proxy"),
		"dns":                client("system:kube-dns"),
		"gateway":            client(gatewayUser),
	}
}

// openIdentities reads or makes all certificates; a few milliseconds the first time.
func openIdentities(c *Config, nodeIP netip.Addr) (*identities, error) {
	dir := c.pkiDir()
	ca, err := pki.OpenAuthority(dir, clusterAuthority)
	if err != nil {
		return nil, err
	}
	id := &identities{ca: ca, clients: map[string]*pki.Leaf{}}
	services := netip.MustParsePrefix(c.ServiceCIDR)
	names := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + c.ClusterDomain, "localhost", c.NodeName}
	ips := []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, services.Addr().Next().AsSlice(), nodeIP.AsSlice()}
	for _, san := range c.TLSSANs {
		if ip := net.ParseIP(san); ip != nil {
			ips = append(ips, ip)
		} else {
			names = append(names, san)
		}
	}
	var group errgroup.Group
	open := func(into **pki.Leaf, name string, r pki.Request) {
		group.Go(func() (err error) {
			*into, err = pki.OpenLeaf(ca, filepath.Join(dir, name), r)
			return err
		})
	}
	open(&id.apiserver, "apiserver", pki.Request{CommonName: "kube-apiserver", DNSNames: names, IPs: ips, Server: true})
	open(&id.kubelet, "kubelet-server", pki.Request{
		CommonName: "system:node:" + c.NodeName, Organizations: []string{"system:nodes"},
		DNSNames: []string{c.NodeName, "localhost"}, IPs: []net.IP{nodeIP.AsSlice(), net.IPv4(127, 0, 0, 1)}, Server: true,
	})
	open(&id.toKubelets, "apiserver-kubelet-client", pki.Request{CommonName: "kube-apiserver-kubelet-client", Organizations: []string{"system:masters"}, Client: true})
	requests := clientNames(c.NodeName)
	leaves := make([]*pki.Leaf, 0, len(requests))
	order := make([]string, 0, len(requests))
	for name := range requests {
		order = append(order, name)
		leaves = append(leaves, nil)
	}
	for i, name := range order {
		open(&leaves[i], name, requests[name])
	}
	group.Go(func() error { return id.openProxy(dir) })
	group.Go(func() (err error) {
		id.accounts, err = pki.OpenKey(filepath.Join(dir, accountsKey))
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	for i, name := range order {
		id.clients[name] = leaves[i]
	}
	return id, nil
}

// renewals are the components that renew the certificates in place.
func (id *identities) renewals() []base.Component {
	leaves := map[string]*pki.Leaf{"apiserver": id.apiserver, "kubelet-server": id.kubelet, "apiserver-kubelet-client": id.toKubelets, proxyLeaf: id.proxy}
	if id.member != nil {
		leaves[memberLeaf] = id.member
	}
	maps.Copy(leaves, id.clients)
	var out []base.Component
	for name, l := range leaves {
		out = append(out, base.Component{Name: "renewal of certificate " + name, Run: l.Run})
	}
	return out
}

// kubeletTLS is how the API server speaks to kubelets.
func (id *identities) kubeletTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: id.ca.Pool(), GetClientCertificate: id.toKubelets.Client}
}
