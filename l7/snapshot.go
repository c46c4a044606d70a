package l7

import (
	"errors"
	"fmt"
)

// A Snapshot is one whole configuration. It is immutable once it has been applied;
// the next one may share any of its parts.
type Snapshot struct {
	// Version is for people: logs and status pages show it.
	Version   string
	Listeners []*Listener
	// Routes are route configurations by name (RDS).
	Routes map[string]*RouteConfiguration
	// Clusters by name (CDS).
	Clusters map[string]*Cluster
	// Endpoints by the name of their cluster (EDS). A cluster without an entry has none.
	// A slice that has changed must be another slice.
	Endpoints map[string][]*Endpoint
}

// Errors of a snapshot.
var (
	// ErrDuplicate is wrapped when two listeners, routes or domains of one kind have the same name.
	ErrDuplicate = errors.New("is there twice")
	// ErrEmpty is wrapped when a name or choice that is needed is missing.
	ErrEmpty = errors.New("is missing")
)

// Validate finds what no engine can carry out. References to route configurations
// and clusters that do not exist are no error: requests to them are answered with
// 404 and 503, as while a cluster is still on its way.
func (s *Snapshot) Validate() error {
	var errs []error
	names := map[string]bool{}
	for _, l := range s.Listeners {
		if l.Name == "" {
			errs = append(errs, fmt.Errorf("listener at %q: name %w", l.Address, ErrEmpty))
		}
		if names[l.Name] {
			errs = append(errs, fmt.Errorf("listener %q %w", l.Name, ErrDuplicate))
		}
		names[l.Name] = true
		errs = append(errs, l.validate())
	}
	for name, r := range s.Routes {
		if err := r.validate(); err != nil {
			errs = append(errs, fmt.Errorf("route configuration %q: %w", name, err))
		}
	}
	for name, c := range s.Clusters {
		if err := c.validate(); err != nil {
			errs = append(errs, fmt.Errorf("cluster %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
