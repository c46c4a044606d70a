package app

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// runtimeConfig reads RuntimeConfig: "api/beta=true"; without a value a version is on.
func (c *Config) runtimeConfig() (map[string]bool, error) {
	out := map[string]bool{}
	for _, s := range c.RuntimeConfig {
		key, value, given := strings.Cut(s, "=")
		on := true
		if given {
			var err error
			if on, err = strconv.ParseBool(value); err != nil {
				return nil, fmt.Errorf("runtime-config: %q is not allowed: must be group/version=true or group/version=false", s)
			}
		}
		out[key] = on
	}
	return out, nil
}

// components says how the parts of the cluster are that run in this process: they
// end only together with it. Others are known by their leases.
func (s *controlPlane) components() map[string]func(context.Context) error {
	if !s.whole || s.quorum != nil {
		return nil
	}
	fine := func(context.Context) error { return nil }
	return map[string]func(context.Context) error{"controller-manager": fine, "scheduler": fine}
}
