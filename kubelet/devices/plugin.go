package devices

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// startTimeout is how long PreStartContainer may take.
const startTimeout = pluginapi.KubeletPreStartContainerRPCTimeoutInSecs * time.Second

// plugin is a connection to a device plug-in.
type plugin struct {
	name, endpoint string
	conn           *grpc.ClientConn
	client         pluginapi.DevicePluginClient

	mu      sync.Mutex // guards the rest
	options *pluginapi.DevicePluginOptions
	closed  bool
}

func dial(name, endpoint string, options *pluginapi.DevicePluginOptions) (*plugin, error) {
	conn, err := grpc.NewClient("unix://"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("device plug-in %s: %w", name, err)
	}
	return &plugin{name: name, endpoint: endpoint, conn: conn, client: pluginapi.NewDevicePluginClient(conn), options: options}, nil
}

// follow passes each list of devices on until the plug-in ends.
func (p *plugin) follow(ctx context.Context, list func([]*pluginapi.Device)) error {
	if options, err := p.client.GetDevicePluginOptions(ctx, &pluginapi.Empty{}, grpc.WaitForReady(true)); err == nil {
		p.mu.Lock()
		p.options = options
		p.mu.Unlock()
	}
	stream, err := p.client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		list(m.Devices)
	}
}

func (p *plugin) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.closed = true
		_ = p.conn.Close()
	}
}

func (p *plugin) wants() *pluginapi.DevicePluginOptions {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.options
}

// preferred asks the plug-in which devices it would take; none if it does not care.
func (p *plugin) preferred(ctx context.Context, available, must []string, size int) ([]string, error) {
	if !p.wants().GetGetPreferredAllocationAvailable() {
		return nil, nil
	}
	resp, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
		AvailableDeviceIDs: available, MustIncludeDeviceIDs: must, AllocationSize: int32(size)}}}) //nolint:gosec // few
	if err != nil {
		return nil, fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
	}
	if len(resp.ContainerResponses) == 0 {
		return nil, nil
	}
	return resp.ContainerResponses[0].DeviceIDs, nil
}

func (p *plugin) allocate(ctx context.Context, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	resp, err := p.client.Allocate(ctx, &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}}})
	if err != nil {
		return nil, err
	}
	if len(resp.ContainerResponses) == 0 {
		return nil, fmt.Errorf("no containers return in allocation response %v", resp)
	}
	return resp.ContainerResponses[0], nil
}
