package requestheader

import (
	"crypto/x509"
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
)

// Config says which proxies are believed, and what they say.
type Config struct {
	// CA is the authority of proxies, in PEM.
	CA []byte
	// Names are the common names that they may have; none: any.
	Names []string
	// The headers, and prefixes of headers, that name the user.
	Users, UIDs, Groups, ExtraPrefixes []string
}

// Authenticator accepts what proxies say. Make it with New.
type Authenticator struct {
	config Config
	next   authenticator.Request
}

var _ authenticator.Request = (*Authenticator)(nil)

// New returns an authenticator.
func New(c Config) (*Authenticator, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return nil, errors.New("the authority of proxies holds no certificate")
	}
	if len(c.Users) == 0 {
		return nil, errors.New("no header is named that holds a proxy's user")
	}
	static := func(list []string) headerrequest.StringSliceProvider { return headerrequest.StaticStringSlice(list) }
	verify := func() (x509.VerifyOptions, bool) {
		o := x509request.DefaultVerifyOptions()
		o.Roots = roots
		return o, true
	}
	return &Authenticator{c, headerrequest.NewDynamicVerifyOptionsSecure(verify, static(c.Names), static(c.Users), static(c.UIDs), static(c.Groups), static(c.ExtraPrefixes))}, nil
}

// Forget removes the headers of proxies, whoever has sent them.
func (a *Authenticator) Forget(h http.Header) {
	static := func(list []string) headerrequest.StringSliceProvider { return headerrequest.StaticStringSlice(list) }
	c := &a.config
	headerrequest.ClearAuthenticationHeaders(h, static(c.Users), static(c.UIDs), static(c.Groups), static(c.ExtraPrefixes))
}

// AuthenticateRequest implements authenticator.Request. The headers go no further.
func (a *Authenticator) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	for _, name := range a.config.Users {
		if r.Header.Get(name) != "" {
			return a.next.AuthenticateRequest(r)
		}
	}
	return nil, false, nil
}
