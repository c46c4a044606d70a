package eventratelimit

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/clock"

	"github.com/periplus/periplus/apiserver/admission"
)

// Name is the plug-in's.
const Name = "EventRateLimit"

type plugin struct{ limits []*limiter }

var _ admission.Validator = (*plugin)(nil)

// New returns the plug-in. config is a Configuration as YAML.
func New(config []byte, time clock.PassiveClock) (admission.Plugin, error) {
	c, err := load(config)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	p := &plugin{}
	for _, l := range c.Limits {
		p.limits = append(p.limits, newLimiter(l, time))
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p *plugin) Validate(_ context.Context, a *admission.Attributes) error {
	if a.Kind.Kind != "Event" || a.DryRun || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	var errs []error
	for _, l := range p.limits {
		if err := l.accept(a); err != nil {
			errs = append(errs, err)
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return apierrors.NewTooManyRequestsError(err.Error())
	}
	return nil
}
