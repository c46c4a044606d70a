package dra

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/periplus/periplus/base"
)

// wipeDelay is how long a driver may be gone before its devices are withdrawn.
const wipeDelay = 30 * time.Second

// callTimeout bounds one call to a driver, as upstream does.
const callTimeout = 45 * time.Second

// Config of Claims.
type Config struct {
	Node   string
	Client kubernetes.Interface
	// Dir holds dra_manager_state.
	Dir string
	Log *slog.Logger
}

// driver is a connection to one.
type driver struct {
	endpoint string
	conn     *grpc.ClientConn
	client   drapb.DRAPluginClient
}

// drivers are those of the node.
type drivers struct {
	cfg Config

	mu     sync.Mutex // guards the rest
	byName map[string]*driver
	wipes  map[string]*time.Timer // of drivers that have gone
}

// Add registers the driver behind a socket.
func (d *drivers) Add(_ context.Context, name, endpoint string, versions []string) error {
	if !slices.Contains(versions, drapb.DRAPluginService) {
		return fmt.Errorf("DRA driver %s: none of the versions %q is supported, only %s", name, versions, drapb.DRAPluginService)
	}
	conn, err := grpc.NewClient("unix://"+endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("DRA driver %s: %w", name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.byName[name]; old != nil {
		_ = old.conn.Close()
	}
	if t := d.wipes[name]; t != nil {
		t.Stop()
		delete(d.wipes, name)
	}
	d.byName[name] = &driver{endpoint: endpoint, conn: conn, client: drapb.NewDRAPluginClient(conn)}
	d.cfg.Log.Info("DRA driver registered", base.KeyName, name, base.KeyPath, endpoint)
	return nil
}

// Drop forgets a driver. If it does not come back its ResourceSlices are deleted.
func (d *drivers) Drop(name, endpoint string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.byName[name]
	if old == nil || old.endpoint != endpoint {
		return
	}
	_ = old.conn.Close()
	delete(d.byName, name)
	d.wipes[name] = time.AfterFunc(wipeDelay, func() { d.wipe(name) })
	d.cfg.Log.Info("DRA driver gone", base.KeyName, name)
}

func (d *drivers) wipe(name string) {
	d.mu.Lock()
	delete(d.wipes, name)
	back := d.byName[name] != nil
	d.mu.Unlock()
	if back {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	err := d.cfg.Client.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		FieldSelector: fields.Set{"spec.nodeName": d.cfg.Node, "spec.driver": name}.String()})
	if err != nil {
		d.cfg.Log.Warn("the devices of a driver that is gone are still offered", base.KeyName, name, base.KeyError, err)
	}
}

func (d *drivers) get(name string) (drapb.DRAPluginClient, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.byName[name]; v != nil {
		return v.client, nil
	}
	return nil, fmt.Errorf("DRA driver %s is not registered", name)
}

func (d *drivers) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, v := range d.byName {
		_ = v.conn.Close()
		delete(d.byName, name)
	}
	for _, t := range d.wipes {
		t.Stop()
	}
}
