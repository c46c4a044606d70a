package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/periplus/periplus/apitest"
	"github.com/periplus/periplus/base/garbage"
	"github.com/periplus/periplus/base/pki"
)

// APIOptions say how an API server for tests is.
type APIOptions struct {
	// Config gives address, port, controllers and the kubeconfig's path. Controllers
	// are those of apitest.API by default; a kubeconfig goes to the directory of
	// temporary files by default.
	Config *Config
	// CRDs are files or directories with definitions to install.
	CRDs []string
}

// UpAPI runs an API server for tests until ctx ends: as apitest does in a Go test, for
// tests in other languages. It needs no root, objects are in memory, and nothing is
// left when it ends. ready is told where the administrator's kubeconfig is.
func UpAPI(ctx context.Context, o APIOptions, log *slog.Logger, ready func(kubeconfig string)) error {
	garbage.Tune()
	c := o.Config
	address, err := apiAddress(c)
	if err != nil {
		return err
	}
	e := &apitest.Environment{
		Address: address, CRDDirectoryPaths: o.CRDs, ErrorIfCRDPathMissing: true, Controllers: c.Controllers, Log: log,
	}
	if slices.Equal(c.Controllers, Defaults().Controllers) {
		e.Controllers = apitest.API()
	}
	config, err := e.Start()
	if err != nil {
		return err
	}
	path := c.Kubeconfig
	if path == "" {
		_, port, err := net.SplitHostPort(config.Host[len("https://"):])
		if err != nil {
			return errors.Join(err, e.Stop())
		}
		path = filepath.Join(os.TempDir(), "periplus-api-"+port+".yaml")
	}
	if err := pki.WriteFile(path, e.KubeConfig, 0o600); err != nil {
		return errors.Join(fmt.Errorf("kubeconfig-path: %w", err), e.Stop())
	}
	ready(path)
	<-ctx.Done()
	return errors.Join(e.Stop(), os.Remove(path))
}

// apiAddress is where an API server for tests listens: on the loopback interface
// unless it is told otherwise.
func apiAddress(c *Config) (string, error) {
	if c.APIPort < 0 || c.APIPort > 65535 {
		return "", fmt.Errorf("api-port: %d is not allowed: must be a port between 1 and 65535, or 0 for a free one", c.APIPort)
	}
	if c.BindAddress == "" {
		c.BindAddress = "127.0.0.1"
	}
	if _, err := netip.ParseAddr(c.BindAddress); err != nil {
		return "", fmt.Errorf("bind-address: %q is not allowed: must be an IP address", c.BindAddress)
	}
	return net.JoinHostPort(c.BindAddress, strconv.Itoa(c.APIPort)), nil
}
