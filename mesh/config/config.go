package config

import (
	"encoding/json"
	"fmt"
	"time"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Meta says which object a value was read from.
type Meta struct {
	Namespace, Name string
	Created         time.Time
	Generation      int64
}

// Key is namespace/name.
func (m Meta) Key() string { return m.Namespace + "/" + m.Name }

// Older orders objects by age, then by name: of two that say the same, the older counts.
func (m Meta) Older(other Meta) int {
	switch {
	case m.Created.Before(other.Created):
		return -1
	case other.Created.Before(m.Created):
		return 1
	case m.Key() < other.Key():
		return -1
	case m.Key() > other.Key():
		return 1
	}
	return 0
}

// A VirtualService is routes for hosts.
type VirtualService struct {
	Meta
	Spec *networking.VirtualService
	// RateLimits are those of Spec.Http, by index: our extension, which Istio's type lacks.
	RateLimits map[int]RateLimit
}

// A RateLimit bounds the requests of one route in one proxy.
type RateLimit struct {
	RequestsPerUnit uint32 `json:"requestsPerUnit"`
	Unit            string `json:"unit"`
	Burst           uint32 `json:"burst"`
}

// Per is the length of the unit; zero for one that does not exist.
func (r RateLimit) Per() time.Duration {
	switch r.Unit {
	case "", "SECOND":
		return time.Second
	case "MINUTE":
		return time.Minute
	case "HOUR":
		return time.Hour
	}
	return 0
}

// A DestinationRule is policies for a host.
type DestinationRule struct {
	Meta
	Spec *networking.DestinationRule
}

// A PeerAuthentication says whether workloads take mutual TLS.
type PeerAuthentication struct {
	Meta
	Spec *security.PeerAuthentication
}

// An AuthorizationPolicy says who may do what.
type AuthorizationPolicy struct {
	Meta
	Spec *security.AuthorizationPolicy
}

func metaOf(u *unstructured.Unstructured) Meta {
	return Meta{Namespace: u.GetNamespace(), Name: u.GetName(), Created: u.GetCreationTimestamp().Time, Generation: u.GetGeneration()}
}

// decode reads the spec of an object into one of Istio's types.
func decode(u *unstructured.Unstructured, into json.Unmarshaler) ([]byte, error) {
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		return nil, err
	}
	if spec == nil {
		spec = map[string]any{}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := into.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return raw, nil
}

// NewVirtualService reads an object.
func NewVirtualService(u *unstructured.Unstructured) (*VirtualService, error) {
	v := &VirtualService{Meta: metaOf(u), Spec: &networking.VirtualService{}}
	raw, err := decode(u, v.Spec)
	if err != nil {
		return nil, err
	}
	var own struct {
		HTTP []struct {
			RateLimit *RateLimit `json:"rateLimit"`
		} `json:"http"`
	}
	if err := json.Unmarshal(raw, &own); err != nil {
		return nil, fmt.Errorf("VirtualService %s: rateLimit: %w", v.Key(), err)
	}
	for i, r := range own.HTTP {
		if r.RateLimit == nil {
			continue
		}
		if v.RateLimits == nil {
			v.RateLimits = map[int]RateLimit{}
		}
		v.RateLimits[i] = *r.RateLimit
	}
	return v, nil
}

// NewDestinationRule reads an object.
func NewDestinationRule(u *unstructured.Unstructured) (*DestinationRule, error) {
	d := &DestinationRule{Meta: metaOf(u), Spec: &networking.DestinationRule{}}
	_, err := decode(u, d.Spec)
	return d, err
}

// NewPeerAuthentication reads an object.
func NewPeerAuthentication(u *unstructured.Unstructured) (*PeerAuthentication, error) {
	p := &PeerAuthentication{Meta: metaOf(u), Spec: &security.PeerAuthentication{}}
	_, err := decode(u, p.Spec)
	return p, err
}

// NewAuthorizationPolicy reads an object.
func NewAuthorizationPolicy(u *unstructured.Unstructured) (*AuthorizationPolicy, error) {
	a := &AuthorizationPolicy{Meta: metaOf(u), Spec: &security.AuthorizationPolicy{}}
	_, err := decode(u, a.Spec)
	return a, err
}

// Mode is the mode for all ports; UNSET without one.
func (p *PeerAuthentication) Mode() security.PeerAuthentication_MutualTLS_Mode {
	if p == nil {
		return security.PeerAuthentication_MutualTLS_UNSET
	}
	return p.Spec.GetMtls().GetMode()
}
