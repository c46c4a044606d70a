package devicestest

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// A Plugin offers devices on a socket of the kubelet's directory.
type Plugin struct {
	pluginapi.UnimplementedDevicePluginServer
	Resource string
	Options  *pluginapi.DevicePluginOptions

	mu      sync.Mutex // guards the rest
	list    []*pluginapi.Device
	changed chan struct{} // closed when list changes
	calls   []string
	server  *grpc.Server
}

// New returns a Plugin of a resource whose devices are all healthy.
func New(resource string, ids ...string) *Plugin {
	p := &Plugin{Resource: resource, Options: &pluginapi.DevicePluginOptions{}, changed: make(chan struct{})}
	for _, id := range ids {
		p.list = append(p.list, &pluginapi.Device{ID: id, Health: pluginapi.Healthy})
	}
	return p
}

// Serve begins to serve in dir and registers with the kubelet there.
func (p *Plugin) Serve(ctx context.Context, dir string) error {
	name := strings.ReplaceAll(p.Resource, "/", "_") + ".sock"
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(dir, name))
	if err != nil {
		return err
	}
	p.server = grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(p.server, p)
	go p.server.Serve(l) //nolint:errcheck // ends with Stop
	conn, err := grpc.NewClient("unix://"+filepath.Join(dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // one call
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{Version: pluginapi.Version, Endpoint: name, ResourceName: p.Resource, Options: p.Options}, grpc.WaitForReady(true))
	return err
}

// Stop ends the plug-in.
func (p *Plugin) Stop() { p.server.Stop() }

// SetHealth changes the health of a device.
func (p *Plugin) SetHealth(id, health string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make([]*pluginapi.Device, len(p.list))
	for i, d := range p.list {
		next[i] = &pluginapi.Device{ID: d.ID, Health: d.Health, Topology: d.Topology}
		if d.ID == id {
			next[i].Health = health
		}
	}
	p.list = next
	close(p.changed)
	p.changed = make(chan struct{})
}

// Calls returns what the kubelet asked for.
func (p *Plugin) Calls() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.calls, ", ")
}

func (p *Plugin) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
}

// GetDevicePluginOptions implements pluginapi.DevicePluginServer.
func (p *Plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return p.Options, nil
}

// ListAndWatch implements pluginapi.DevicePluginServer.
func (p *Plugin) ListAndWatch(_ *pluginapi.Empty, s grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		p.mu.Lock()
		list, changed := p.list, p.changed
		p.mu.Unlock()
		if err := s.Send(&pluginapi.ListAndWatchResponse{Devices: list}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-s.Context().Done():
			return nil
		}
	}
}

// GetPreferredAllocation implements pluginapi.DevicePluginServer: the last ones.
func (p *Plugin) GetPreferredAllocation(_ context.Context, r *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	c := r.ContainerRequests[0]
	p.note("prefer %d of %v", c.AllocationSize, c.AvailableDeviceIDs)
	ids := slices.Clone(c.AvailableDeviceIDs)
	slices.Reverse(ids)
	return &pluginapi.PreferredAllocationResponse{ContainerResponses: []*pluginapi.ContainerPreferredAllocationResponse{{DeviceIDs: ids[:c.AllocationSize]}}}, nil
}

// Allocate implements pluginapi.DevicePluginServer: a variable that names the devices.
func (p *Plugin) Allocate(_ context.Context, r *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	ids := r.ContainerRequests[0].DevicesIds
	p.note("allocate %v", ids)
	return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{
		Envs:        map[string]string{"DEVICES": strings.Join(ids, ",")},
		Annotations: map[string]string{"devices": "yes"},
		Devices:     []*pluginapi.DeviceSpec{{HostPath: "/dev/null", ContainerPath: "/dev/" + ids[0], Permissions: "rw"}},
		CdiDevices:  []*pluginapi.CDIDevice{{Name: "example.com/dev=" + ids[0]}},
	}}}, nil
}

// PreStartContainer implements pluginapi.DevicePluginServer.
func (p *Plugin) PreStartContainer(_ context.Context, r *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	p.note("start %v", r.DevicesIds)
	return &pluginapi.PreStartContainerResponse{}, nil
}
