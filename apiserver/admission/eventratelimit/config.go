package eventratelimit

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const (
	version = "eventratelimit.admission.k8s.io/v1alpha1"
	// defaultCache is how many namespaces, users or objects are remembered.
	defaultCache = 4096
)

// A Configuration lists limits (eventratelimit.admission.k8s.io/v1alpha1).
type Configuration struct {
	metav1.TypeMeta `json:",inline"`
	Limits          []Limit `json:"limits"`
}

// A Limit bounds the events of each of its kind: a bucket of Burst that fills with QPS a second.
type Limit struct {
	Type      string `json:"type"`
	QPS       int32  `json:"qps"`
	Burst     int32  `json:"burst"`
	CacheSize int32  `json:"cacheSize,omitempty"`
}

func load(data []byte) (*Configuration, error) {
	if len(data) == 0 {
		return nil, errors.New("there is none: limits are needed")
	}
	c := &Configuration{}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, err
	}
	if c.APIVersion != version || c.Kind != "Configuration" {
		return nil, fmt.Errorf("it is a %s of %q, want a Configuration of %s", c.Kind, c.APIVersion, version)
	}
	return c, c.validate().ToAggregate()
}

func (c *Configuration) validate() (errs field.ErrorList) {
	limits := field.NewPath("limits")
	if len(c.Limits) == 0 {
		errs = append(errs, field.Invalid(limits, c.Limits, "must not be empty"))
	}
	for i, l := range c.Limits {
		at := limits.Index(i)
		if keys[l.Type] == nil {
			errs = append(errs, field.NotSupported(at.Child("type"), l.Type, []string{"Server", "Namespace", "User", "SourceAndObject"}))
		}
		if l.Burst <= 0 {
			errs = append(errs, field.Invalid(at.Child("burst"), l.Burst, "must be positive"))
		}
		if l.QPS <= 0 {
			errs = append(errs, field.Invalid(at.Child("qps"), l.QPS, "must be positive"))
		}
		if l.CacheSize < 0 && l.Type != "Server" {
			errs = append(errs, field.Invalid(at.Child("cacheSize"), l.CacheSize, "must not be negative"))
		}
	}
	return errs
}
