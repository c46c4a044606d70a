package all

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/periplus/periplus/proxy"
	"github.com/periplus/periplus/proxy/iptables"
	"github.com/periplus/periplus/proxy/nftables"
)

// Backends returns the constructor of each backend by name.
func Backends() map[string]func(proxy.BackendConfig) (proxy.Backend, error) {
	return map[string]func(proxy.BackendConfig) (proxy.Backend, error){
		"nftables": func(c proxy.BackendConfig) (proxy.Backend, error) {
			return nftables.New(nftables.Config{BackendConfig: c})
		},
		"iptables": func(c proxy.BackendConfig) (proxy.Backend, error) { return iptables.New(c) },
	}
}

// Names are the names of the backends, sorted.
func Names() []string { return slices.Sorted(maps.Keys(Backends())) }

// New makes the backend of that name.
func New(name string, c proxy.BackendConfig) (proxy.Backend, error) {
	f, ok := Backends()[name]
	if !ok {
		return nil, fmt.Errorf("proxy mode %q is unknown, must be one of %s", name, strings.Join(Names(), ", "))
	}
	return f(c)
}

// Cleanup removes what any of the backends has made.
func Cleanup(c proxy.BackendConfig) error {
	var errs []error
	for name, open := range Backends() {
		b, err := open(c)
		if errors.Is(err, proxy.ErrMissing) {
			continue // without its programs it has made nothing
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		errs = append(errs, b.Cleanup(), b.Close())
	}
	return errors.Join(errs...)
}
