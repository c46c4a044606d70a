package devices

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/periplus/periplus/base"
)

// stopGrace is how long the devices of a plug-in that is gone still count as capacity.
const stopGrace = 5 * time.Minute

// Config of a Registry.
type Config struct {
	// Dir holds kubelet.sock and the sockets of plug-ins: <kubelet>/device-plugins.
	Dir string
	// Changed is called when the node has other devices than before.
	Changed func()
	Log     *slog.Logger
}

// A Registry knows the devices of a node and who has them.
type Registry struct {
	pluginapi.UnimplementedRegistrationServer
	cfg  Config
	ctx  context.Context // of Run
	work sync.WaitGroup

	mu        sync.Mutex // guards the rest
	resources map[string]*offer
	given     map[string]*Allocation // by key of pod and container, and resource
}

// offer is one resource: the devices that its plug-in has told of.
type offer struct {
	plugin  *plugin // nil after it has gone
	devices map[string]*pluginapi.Device
	expires *time.Timer // while plugin is nil
}

func (o *offer) healthy() []string {
	var out []string
	for id, d := range o.devices {
		if d.Health == pluginapi.Healthy && o.plugin != nil {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// New returns a Registry that knows what an earlier life gave away.
func New(c Config) (*Registry, error) {
	r := &Registry{cfg: c, resources: map[string]*offer{}, given: map[string]*Allocation{}}
	if err := r.load(); err != nil {
		c.Log.Warn("it is not known which devices were given to whom", base.KeyError, err)
	}
	return r, nil
}

// Run takes registrations on kubelet.sock until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	r.mu.Unlock()
	if err := os.MkdirAll(r.cfg.Dir, 0o750); err != nil {
		return fmt.Errorf("device plug-ins: %w", err)
	}
	socket := filepath.Join(r.cfg.Dir, "kubelet.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("device plug-ins: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("device plug-ins: %w", err)
	}
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, r)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	err = server.Serve(listener)
	r.mu.Lock()
	for _, o := range r.resources {
		if o.expires != nil {
			o.expires.Stop()
		}
	}
	r.mu.Unlock()
	r.work.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Register implements pluginapi.RegistrationServer.
func (r *Registry) Register(_ context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	if !slices.Contains(pluginapi.SupportedVersions[:], req.Version) {
		return nil, fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q", req.Version, pluginapi.SupportedVersions)
	}
	if err := validName(req.ResourceName); err != nil {
		return nil, err
	}
	if req.Endpoint == "" || filepath.Base(req.Endpoint) != req.Endpoint {
		return nil, fmt.Errorf("the endpoint %q is not the name of a socket in %s", req.Endpoint, r.cfg.Dir)
	}
	return &pluginapi.Empty{}, r.connect(req.ResourceName, filepath.Join(r.cfg.Dir, req.Endpoint), req.Options)
}

// Add is registration by the plug-ins' directory: endpoint is a socket's path.
func (r *Registry) Add(ctx context.Context, name, endpoint string, versions []string) error {
	if !slices.ContainsFunc(versions, func(v string) bool { return slices.Contains(pluginapi.SupportedVersions[:], v) }) {
		return fmt.Errorf("device plugin %s: versions %q are not supported by kubelet. Supported version is %q", name, versions, pluginapi.SupportedVersions)
	}
	if err := validName(name); err != nil {
		return err
	}
	return r.connect(name, endpoint, nil)
}

// Drop ends a registration of Add.
func (r *Registry) Drop(name, endpoint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.resources[name]; o != nil && o.plugin != nil && o.plugin.endpoint == endpoint {
		o.plugin.close()
	}
}

// validName: an extended resource, example.com/gpu.
func validName(name string) error {
	ok := !slices.Contains([]string{"cpu", "memory", "pods", "ephemeral-storage"}, name)
	if domain, _, found := cutDomain(name); !found || domain == "kubernetes.io" || len(validation.IsQualifiedName(name)) > 0 {
		ok = false
	}
	if !ok {
		return fmt.Errorf("the ResourceName %q is invalid", name)
	}
	return nil
}

func cutDomain(name string) (domain, rest string, found bool) {
	for i := range name {
		if name[i] == '/' {
			return name[:i], name[i+1:], true
		}
	}
	return "", name, false
}

// connect follows a plug-in's devices; an older one of the resource is dropped.
func (r *Registry) connect(name, endpoint string, options *pluginapi.DevicePluginOptions) error {
	p, err := dial(name, endpoint, options)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.ctx.Err() != nil {
		p.close()
		return errors.New("the kubelet is not ready for device plug-ins")
	}
	o := r.resources[name]
	if o == nil {
		o = &offer{devices: map[string]*pluginapi.Device{}}
		r.resources[name] = o
	}
	if o.plugin != nil {
		o.plugin.close()
	}
	if o.expires != nil {
		o.expires.Stop()
		o.expires = nil
	}
	o.plugin = p
	ctx := r.ctx
	r.work.Go(func() {
		err := p.follow(ctx, func(list []*pluginapi.Device) { r.update(name, p, list) })
		if ctx.Err() == nil {
			r.cfg.Log.Info("a device plug-in is gone", base.KeyName, name, base.KeyError, err)
		}
		r.gone(name, p)
	})
	r.cfg.Log.Info("device plug-in registered", base.KeyName, name, base.KeyPath, endpoint)
	return nil
}

// update takes the plug-in's newest list.
func (r *Registry) update(name string, p *plugin, list []*pluginapi.Device) {
	r.mu.Lock()
	o := r.resources[name]
	if o == nil || o.plugin != p {
		r.mu.Unlock()
		return
	}
	o.devices = make(map[string]*pluginapi.Device, len(list))
	for _, d := range list {
		o.devices[d.ID] = d
	}
	r.mu.Unlock()
	r.cfg.Changed()
}

// gone makes a plug-in's devices unhealthy, and forgets them after a while.
func (r *Registry) gone(name string, p *plugin) {
	p.close()
	r.mu.Lock()
	o := r.resources[name]
	if o == nil || o.plugin != p {
		r.mu.Unlock()
		return
	}
	o.plugin = nil
	if r.ctx.Err() == nil {
		o.expires = time.AfterFunc(stopGrace, func() { r.expire(name, o) })
	}
	r.mu.Unlock()
	r.cfg.Changed()
}

func (r *Registry) expire(name string, o *offer) {
	r.mu.Lock()
	if r.resources[name] == o && o.plugin == nil {
		o.devices = map[string]*pluginapi.Device{}
	}
	r.mu.Unlock()
	r.cfg.Changed()
}

// Capacity is what of each resource there is, and what of it is healthy.
func (r *Registry) Capacity() (capacity, allocatable corev1.ResourceList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	capacity, allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, o := range r.resources {
		capacity[corev1.ResourceName(name)] = *resource.NewQuantity(int64(len(o.devices)), resource.DecimalSI)
		allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(int64(len(o.healthy())), resource.DecimalSI)
	}
	return capacity, allocatable
}

// Nodes returns the NUMA nodes of the free and the reusable devices of a resource, one
// entry a device; known is false if the resource is no plug-in's.
func (r *Registry) Nodes(resource string) (nodes [][]int, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.resources[resource]
	if o == nil {
		return nil, false
	}
	used := r.usedLocked(resource)
	for _, id := range o.healthy() {
		if !used[id] {
			nodes = append(nodes, nodesOf(o.devices[id]))
		}
	}
	return nodes, true
}

func nodesOf(d *pluginapi.Device) []int {
	var out []int
	for _, n := range d.GetTopology().GetNodes() {
		out = append(out, int(n.ID))
	}
	return out
}
