package mesh

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ErrUnauthenticated is returned by an Authenticator when the caller has not shown who it is.
var ErrUnauthenticated = errors.New("the caller could not be authenticated")

// An Identity is that of a workload: its service account.
type Identity struct {
	TrustDomain    string
	Namespace      string
	ServiceAccount string
}

// String is the SPIFFE ID: spiffe://cluster.local/ns/NS/sa/SA.
func (i Identity) String() string { return "spiffe://" + i.Principal() }

// Principal is the SPIFFE ID without its scheme, as policies write it.
func (i Identity) Principal() string {
	return i.TrustDomain + "/ns/" + i.Namespace + "/sa/" + i.ServiceAccount
}

// URL is the SPIFFE ID for a certificate.
func (i Identity) URL() *url.URL {
	return &url.URL{Scheme: "spiffe", Host: i.TrustDomain, Path: "/ns/" + i.Namespace + "/sa/" + i.ServiceAccount}
}

// ParseIdentity reads a SPIFFE ID.
func ParseIdentity(id string) (Identity, error) {
	rest, ok := strings.CutPrefix(id, "spiffe://")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 5 || parts[1] != "ns" || parts[3] != "sa" {
		return Identity{}, fmt.Errorf("identity %q must be spiffe://<trust domain>/ns/<namespace>/sa/<service account>", id)
	}
	return Identity{TrustDomain: parts[0], Namespace: parts[2], ServiceAccount: parts[4]}, nil
}

// A Caller is who calls the control plane.
type Caller struct {
	Identity
	// Pod is the pod that the token is bound to; empty: none.
	Pod string
}

// An Authenticator finds out who makes a gRPC call, from the call's metadata and
// its connection. Errors wrap ErrUnauthenticated or say why nobody could be asked.
type Authenticator interface {
	Authenticate(ctx context.Context) (Caller, error)
}
