package csi

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// CallTimeout bounds one call of a driver. Drivers go on with what was cut off, and
// the call is repeated.
const CallTimeout = 2 * time.Minute

// A Driver is a storage driver. All calls are idempotent (CSI 1.12).
type Driver struct {
	csipb.IdentityClient
	csipb.ControllerClient
	csipb.NodeClient

	// Endpoint is the driver's socket, "" in this process.
	Endpoint string

	closer io.Closer

	mu    sync.Mutex // guards known
	known *Capabilities
}

func newDriver(conn grpc.ClientConnInterface, endpoint string, closer io.Closer) *Driver {
	return &Driver{
		IdentityClient: csipb.NewIdentityClient(conn), ControllerClient: csipb.NewControllerClient(conn),
		NodeClient: csipb.NewNodeClient(conn), Endpoint: endpoint, closer: closer,
	}
}

// Dial returns the driver that listens on a Unix socket. The connection is made
// with the first call.
func Dial(socket string) (*Driver, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(time.Minute))
	if err != nil {
		return nil, fmt.Errorf("csi: %s: %w", socket, err)
	}
	return newDriver(conn, socket, conn), nil
}

// Close ends the connection.
func (d *Driver) Close() error {
	if d.closer == nil {
		return nil
	}
	return d.closer.Close()
}

// Capabilities are what a driver can do.
type Capabilities struct {
	Name string
	// Of the plug-in.
	Controller, Topology, OnlineExpansion bool
	// Of the controller service.
	CreateDelete, Publish, Expand, Snapshot, Clone, MultiWriter bool
	// Of the node service.
	Stage, NodeExpand, Stats, MountGroup bool
}

// Capabilities asks the driver what it can do; the answer is kept.
func (d *Driver) Capabilities(ctx context.Context) (Capabilities, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known != nil {
		return *d.known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var c Capabilities
	info, err := d.GetPluginInfo(ctx, &csipb.GetPluginInfoRequest{})
	if err != nil {
		return c, err
	}
	c.Name = info.GetName()
	plugin, err := d.GetPluginCapabilities(ctx, &csipb.GetPluginCapabilitiesRequest{})
	if err != nil {
		return c, err
	}
	for _, p := range plugin.GetCapabilities() {
		switch p.GetService().GetType() {
		case csipb.PluginCapability_Service_CONTROLLER_SERVICE:
			c.Controller = true
		case csipb.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS:
			c.Topology = true
		}
		if p.GetVolumeExpansion().GetType() == csipb.PluginCapability_VolumeExpansion_ONLINE {
			c.OnlineExpansion = true
		}
	}
	if c.Controller {
		if err := d.controllerCapabilities(ctx, &c); err != nil {
			return c, err
		}
	}
	node, err := d.NodeGetCapabilities(ctx, &csipb.NodeGetCapabilitiesRequest{})
	if err != nil {
		return c, err
	}
	for _, n := range node.GetCapabilities() {
		switch n.GetRpc().GetType() {
		case csipb.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME:
			c.Stage = true
		case csipb.NodeServiceCapability_RPC_EXPAND_VOLUME:
			c.NodeExpand = true
		case csipb.NodeServiceCapability_RPC_GET_VOLUME_STATS:
			c.Stats = true
		case csipb.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP:
			c.MountGroup = true
		}
	}
	d.known = &c
	return c, nil
}

func (d *Driver) controllerCapabilities(ctx context.Context, c *Capabilities) error {
	resp, err := d.ControllerGetCapabilities(ctx, &csipb.ControllerGetCapabilitiesRequest{})
	if err != nil {
		return err
	}
	for _, r := range resp.GetCapabilities() {
		switch r.GetRpc().GetType() {
		case csipb.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME:
			c.CreateDelete = true
		case csipb.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME:
			c.Publish = true
		case csipb.ControllerServiceCapability_RPC_EXPAND_VOLUME:
			c.Expand = true
		case csipb.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT:
			c.Snapshot = true
		case csipb.ControllerServiceCapability_RPC_CLONE_VOLUME:
			c.Clone = true
		case csipb.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER:
			c.MultiWriter = true
		}
	}
	return nil
}
