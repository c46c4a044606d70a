package image

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"strings"
)

// Layers is where unpacked layers live. snapshot.Snapshotter has these methods
// and says what each means.
type Layers interface {
	Root() string
	Stage(ctx context.Context, diff io.Reader) (staged string, err error)
	Discard(staged string)
	Commit(ctx context.Context, staged, chainID, parent string, reopen func() (io.ReadCloser, error)) error
	Build(ctx context.Context, chainID string, fill func(dir string) error) error
	Acquire(chainID string) bool
	Release(chainID string)
	Collect(ctx context.Context) error
	LayersUsage() (bytes, inodes int64)
}

// Auth are credentials for one registry: a name and password, a bearer token,
// or an OAuth2 refresh token (IdentityToken).
type Auth struct {
	Username      string `json:"username,omitempty"`
	Password      string `json:"password,omitempty"`
	IdentityToken string `json:"identityToken,omitempty"`
	RegistryToken string `json:"registryToken,omitempty"`
}

// Options configure a Store.
type Options struct {
	// Layers unpacks layers. Required.
	Layers Layers
	// Mirrors maps a registry ("docker.io", "registry.example:5000", "*" for all
	// others) to the endpoints that are asked before it, in order:
	// "https://mirror.example", "http://10.0.0.5:5000/prefix" or just a host.
	Mirrors map[string][]string
	// PlainHTTP lists registries ("host" or "host:port") that are spoken to without
	// TLS if they have none. Loopback addresses always are.
	PlainHTTP []string
	// InsecureTLS lists registries whose certificate is not verified.
	InsecureTLS []string
	// Auths are credentials by registry host, used when a pull brings none.
	Auths map[string]Auth
	// Platform is the default platform, "linux/<arch of this binary>" if empty.
	Platform string
	// Downloads bounds the layers of one pull that are fetched at the same time. 0 means 4.
	Downloads int
	// Transport carries the requests. nil means one with the environment's proxy settings.
	Transport *http.Transport
	// Elsewhere, if not nil, is asked for an archive of an image, by tag, before its
	// registry: other nodes of this machine may have it. ErrNotFound says that they
	// do not.
	Elsewhere func(ctx context.Context, ref string) (io.ReadCloser, error)
	// Programs are images that are made here when they are first asked for.
	Programs []Program
	// Log receives what goes wrong in the background. nil means slog.Default.
	Log *slog.Logger
}

// PullOptions are the wishes of one pull.
type PullOptions struct {
	// Auth are credentials for the image's own registry. They are never sent to a mirror.
	Auth *Auth
	// Platform is "os/arch" or "os/arch/variant". Empty means the store's.
	Platform string
}

func (o *Options) validate() error {
	if o.Layers == nil {
		return fmt.Errorf("image: Options.Layers is required")
	}
	if o.Platform == "" {
		o.Platform = "linux/" + runtime.GOARCH
	}
	if _, err := parsePlatform(o.Platform); err != nil {
		return fmt.Errorf("image: Options.Platform: %w", err)
	}
	if o.Downloads < 0 {
		return fmt.Errorf("image: Options.Downloads is %d, must be 0 (for 4) or more", o.Downloads)
	}
	if o.Downloads == 0 {
		o.Downloads = 4
	}
	for host, endpoints := range o.Mirrors {
		for _, e := range endpoints {
			raw := e
			if !strings.Contains(raw, "://") {
				raw = "https://" + raw
			}
			u, err := url.Parse(raw)
			if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
				return fmt.Errorf("image: Options.Mirrors[%q]: %q is not an http or https URL", host, e)
			}
		}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return nil
}
