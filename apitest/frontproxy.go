package apitest

import (
	"crypto/tls"

	"github.com/periplus/periplus/apiserver/aggregator"
	"github.com/periplus/periplus/base/pki"
)

// frontProxy proves the API server to extension API servers, and proxies to it.
type frontProxy struct {
	ca          *pki.Authority
	certificate tls.Certificate
}

const proxyName = "front-proxy-client"

func newFrontProxy() (*frontProxy, error) {
	ca, err := pki.New("apitest-front-proxy")
	if err != nil {
		return nil, err
	}
	cert, key, err := ca.Pair(pki.Request{CommonName: proxyName, Client: true})
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	return &frontProxy{ca, pair}, nil
}

func (p *frontProxy) client(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return &p.certificate, nil
}

func (p *frontProxy) trust(clients []byte) aggregator.Trust {
	return aggregator.Trust{
		ClientCA: clients, ProxyCA: p.ca.PEM, ProxyNames: []string{proxyName},
		UserHeaders: []string{"X-Remote-User"}, UIDHeaders: []string{"X-Remote-Uid"}, GroupHeaders: []string{"X-Remote-Group"}, ExtraPrefixes: []string{"X-Remote-Extra-"},
	}
}
