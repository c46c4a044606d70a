package registrar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/linux/inotify"
)

// registerTimeout bounds one registration: a driver may still be starting.
const registerTimeout = time.Minute

// A Builtin is a driver that is always there; it is made known without being opened.
type Builtin struct {
	Name, NodeID string
	TopologyKeys []string
}

// Config of a Registrar.
type Config struct {
	Node string
	// Dir holds the registration sockets: <kubelet>/plugins_registry.
	Dir     string
	Client  kubernetes.Interface
	Drivers *csi.Drivers
	Builtin []Builtin
	// Registered is closed when the node's object exists; NodeObject returns it.
	Registered <-chan struct{}
	NodeObject func() *corev1.Node
	Log        *slog.Logger
	// Others take plug-ins of other types, by type.
	Others map[string]Other
}

// An Other takes plug-ins that are not storage drivers.
type Other interface {
	Add(ctx context.Context, name, endpoint string, versions []string) error
	Drop(name, endpoint string)
}

// A Registrar keeps the drivers of a node.
type Registrar struct {
	config Config
	known  map[string]*registration // by socket; of Run's goroutine alone
}

// registration is a driver that came by socket.
type registration struct {
	socket string
	name   string
	driver *csi.Driver

	other    Other // instead of driver
	endpoint string
}

// New returns a Registrar that does nothing until Run.
func New(c Config) *Registrar {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Registrar{config: c, known: map[string]*registration{}}
}

// Run registers what is there and what comes, until ctx ends.
func (r *Registrar) Run(ctx context.Context) error {
	select {
	case <-r.config.Registered:
	case <-ctx.Done():
		return nil
	}
	if err := r.keep(ctx, r.withBuiltin); err != nil && ctx.Err() == nil {
		r.config.Log.Warn("the node's drivers could not be announced", base.KeyError, err)
	}
	if err := os.MkdirAll(r.config.Dir, 0o750); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := r.follow(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("csi: %s: %w", r.config.Dir, err)
		}
	}
	return nil
}

// follow watches the directory until ctx ends or events were lost.
func (r *Registrar) follow(ctx context.Context) error {
	w, err := inotify.Watch(r.config.Dir)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // only read
	sockets, err := r.sockets()
	if err != nil {
		return err
	}
	for socket := range r.known {
		if !slices.Contains(sockets, socket) {
			r.gone(ctx, socket)
		}
	}
	for _, s := range sockets {
		if r.known[s] == nil {
			r.come(ctx, s)
		}
	}
	for {
		e, err := w.Next(ctx)
		switch {
		case err != nil:
			return err
		case e.Has(inotify.Lost):
			return nil // look at everything again
		case strings.HasPrefix(e.Name, "."):
		case e.Has(inotify.Remove):
			r.gone(ctx, filepath.Join(r.config.Dir, e.Name))
		case e.Has(inotify.Create):
			if socket := filepath.Join(r.config.Dir, e.Name); isSocket(socket) {
				r.gone(ctx, socket) // a new program under the old name
				r.come(ctx, socket)
			}
		}
	}
}

func (r *Registrar) sockets() ([]string, error) {
	entries, err := os.ReadDir(r.config.Dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if path := filepath.Join(r.config.Dir, e.Name()); isSocket(path) {
			out = append(out, path)
		}
	}
	return out, nil
}

func isSocket(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode()&os.ModeSocket != 0
}

// come registers the plug-in behind a socket, if it is a storage driver.
func (r *Registrar) come(ctx context.Context, socket string) {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return
	}
	defer conn.Close() //nolint:errcheck // one call each
	plugin := registerapi.NewRegistrationClient(conn)
	info, err := plugin.GetInfo(ctx, &registerapi.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		r.config.Log.Warn("a registration socket does not answer", base.KeyPath, socket, base.KeyError, err)
		return
	}
	other := r.config.Others[info.Type]
	if info.Type != registerapi.CSIPlugin && other == nil {
		return // nobody here knows what to do with it
	}
	endpoint := info.Endpoint
	if endpoint == "" {
		endpoint = socket
	}
	var driver *csi.Driver
	if other != nil {
		err = other.Add(ctx, info.Name, endpoint, info.SupportedVersions)
	} else {
		driver, err = r.register(ctx, info.Name, endpoint)
	}
	status := &registerapi.RegistrationStatus{PluginRegistered: err == nil}
	if err != nil {
		status.Error = err.Error()
		r.config.Log.Warn("a plug-in could not be registered", base.KeyName, info.Name, base.KeyError, err)
	} else {
		r.known[socket] = &registration{socket: socket, name: info.Name, driver: driver, other: other, endpoint: endpoint}
		r.config.Log.Info("plug-in registered", base.KeyKind, info.Type, base.KeyName, info.Name, base.KeyPath, endpoint)
	}
	if _, err := plugin.NotifyRegistrationStatus(ctx, status); err != nil {
		r.config.Log.Warn("a plug-in was not told about its registration", base.KeyName, info.Name, base.KeyError, err)
	}
}

func (r *Registrar) register(ctx context.Context, name, endpoint string) (*csi.Driver, error) {
	if r.config.Drivers.IsBuiltin(name) {
		return nil, fmt.Errorf("a driver of the name %s is built in", name)
	}
	driver, err := csi.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	info, err := driver.NodeGetInfo(ctx, &csipb.NodeGetInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("NodeGetInfo: %s", csi.Message(err)), driver.Close())
	}
	// Who is told of the driver finds what the node says about it.
	if err := r.announce(ctx, name, info); err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	r.config.Drivers.Register(name, driver)
	return driver, nil
}

// gone drops the driver of a socket.
func (r *Registrar) gone(ctx context.Context, socket string) {
	known := r.known[socket]
	if known == nil {
		return
	}
	delete(r.known, socket)
	if known.other != nil {
		known.other.Drop(known.name, known.endpoint)
		return
	}
	r.config.Drivers.Deregister(known.name, known.driver)
	if err := r.keep(ctx, without(known.name)); err != nil {
		r.config.Log.Warn("a storage driver that is gone is still announced", base.KeyName, known.name, base.KeyError, err)
	}
	r.config.Log.Info("storage driver gone", base.KeyName, known.name)
}
