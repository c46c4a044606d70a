package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/periplus/periplus/base"
)

// guard lets a request through when its user is known and may do what it asks.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := s.authenticate(r)
		if err != nil {
			s.config.Log.Debug("request to the kubelet is not authenticated",
				base.KeyAddress, r.RemoteAddr, base.KeyPath, r.URL.Path, base.KeyError, err)
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		if slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup) {
			next.ServeHTTP(w, r)
			return
		}
		subresources := subresources(r.URL.Path)
		for _, sub := range subresources {
			decision, _, err := s.config.Authorizer.Authorize(r.Context(), s.attributes(r, who, sub))
			if err != nil {
				s.config.Log.Warn("request to the kubelet cannot be authorized", base.KeyUser, who.GetName(), base.KeyError, err)
				http.Error(w, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)",
					who.GetName(), verb(r.Method), sub), http.StatusInternalServerError)
				return
			}
			if decision == authorizer.DecisionAllow {
				next.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)\n",
			who.GetName(), verb(r.Method), subresources), http.StatusForbidden)
	})
}

var errNoCredentials = errors.New("no client certificate and no bearer token")

func (s *Server) authenticate(r *http.Request) (user.Info, error) {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return s.certificateUser(r.TLS.PeerCertificates)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" || s.config.Tokens == nil {
		return nil, errNoCredentials
	}
	response, ok, err := s.config.Tokens.AuthenticateToken(r.Context(), token)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, errors.New("bearer token is not valid")
	}
	return response.User, nil
}

// certificateUser takes the common name as the user and the organizations as
// groups, if one of our authorities vouches for the certificate.
func (s *Server) certificateUser(chain []*x509.Certificate) (user.Info, error) {
	intermediates := x509.NewCertPool()
	for _, c := range chain[1:] {
		intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots:         s.config.ClientCAs(),
		Intermediates: intermediates,
		CurrentTime:   time.Now(),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return nil, err
	}
	subject := chain[0].Subject
	if subject.CommonName == "" {
		return nil, errors.New("client certificate has no common name")
	}
	groups := append(slices.Clone(subject.Organization), user.AllAuthenticated)
	return &user.DefaultInfo{Name: subject.CommonName, Groups: groups}, nil
}

func (s *Server) attributes(r *http.Request, who user.Info, subresource string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: who, Verb: verb(r.Method),
		APIVersion: "v1", Resource: "nodes", Subresource: subresource, Name: s.config.NodeName,
		ResourceRequest: true, Path: r.URL.Path,
	}
}

func verb(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return ""
}

// subresources says which permissions on nodes each open the path: one of them
// is enough (KEP-2862 for those besides proxy).
func subresources(path string) []string {
	root, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch root {
	case "stats", "metrics", "checkpoint":
		return []string{root}
	case "logs":
		return []string{"log"}
	case "pods", "runningpods":
		return []string{"pods", "proxy"}
	case "healthz", "configz":
		return []string{root, "proxy"}
	}
	return []string{"proxy"}
}
