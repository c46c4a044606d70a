package encryption

import (
	"errors"
	"net/http"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
)

// checks are several checks as one.
type checks []healthz.HealthChecker

func health(c *encryptionconfig.EncryptionConfiguration) healthz.HealthChecker {
	return checks(c.HealthChecks)
}

// Name implements healthz.HealthChecker.
func (checks) Name() string { return "kms-providers" }

// Check implements healthz.HealthChecker.
func (c checks) Check(r *http.Request) error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Check(r))
	}
	return errors.Join(errs...)
}
