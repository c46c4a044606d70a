package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/mesh/sidecar/translate"
)

// A discoverer follows the control plane and keeps what it has said, also while it
// is away: then it goes on from the versions that it has.
type discoverer struct {
	client discovery.AggregatedDiscoveryServiceClient
	node   *core.Node
	state  *translate.State
	// apply puts the state in force.
	apply func() error
	log   *slog.Logger
	hops  *hops

	// versions are those of all resources, by type and name; a name without a version
	// was asked for and does not exist.
	versions map[string]map[string]string
	// pending are names that were asked for and not answered.
	pending map[string]map[string]bool
	first   chan struct{} // closed when a whole configuration is in force
	whole   bool
}

func newDiscoverer(c *Config, client discovery.AggregatedDiscoveryServiceClient, s *translate.State, apply func() error) *discoverer {
	labels := map[string]*structpb.Value{}
	for k, v := range c.Labels {
		labels[k] = structpb.NewStringValue(v)
	}
	text := structpb.NewStringValue
	d := &discoverer{
		client: client, state: s, apply: apply, log: c.Log, first: make(chan struct{}),
		node: &core.Node{Id: c.nodeID(), Cluster: c.Workload + "." + c.Namespace, UserAgentName: "periplus-sidecar", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			"NAME": text(c.Pod), "NAMESPACE": text(c.Namespace), "WORKLOAD_NAME": text(c.Workload), "SERVICE_ACCOUNT": text(c.ServiceAccount),
			"LABELS": structpb.NewStructValue(&structpb.Struct{Fields: labels}), "CLUSTER_ID": text("Kubernetes"),
		}}},
		versions: map[string]map[string]string{}, pending: map[string]map[string]bool{},
	}
	for _, t := range translate.Types {
		d.versions[t], d.pending[t] = map[string]string{}, map[string]bool{}
	}
	return d
}

// Run follows until ctx ends.
func (d *discoverer) Run(ctx context.Context) error {
	wait := retryFirst
	for {
		began := time.Now()
		err := d.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if time.Since(began) > retryMost {
			wait = retryFirst
		}
		d.log.Info("connection to the control plane ended", base.KeyError, err)
		// Proxies that have lost the same control plane must not come back at once.
		t := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		wait = min(2*wait, retryMost/2)
	}
}

// follow is the life of one stream.
func (d *discoverer) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opened, err := d.client.DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	stream := &lockedStream{AggregatedDiscoveryService_DeltaAggregatedResourcesClient: opened}
	for i, typ := range translate.Types {
		r := &discovery.DeltaDiscoveryRequest{TypeUrl: typ, InitialResourceVersions: known(d.versions[typ])}
		if i == 0 {
			r.Node = d.node
		}
		if named := typ == translate.TypeEndpoint || typ == translate.TypeRoute; named {
			clear(d.pending[typ])
			names := d.state.Wanted(typ)
			if len(names) == 0 {
				continue // asked for when their clusters and listeners are known
			}
			for _, n := range names {
				if _, ok := d.versions[typ][n]; !ok {
					d.pending[typ][n] = true
				}
			}
			r.ResourceNamesSubscribe = names
		}
		if err := stream.Send(r); err != nil {
			return closed(stream, err)
		}
	}
	if d.hops != nil {
		d.hops.connected(stream.Send)
		defer d.hops.disconnected()
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := d.take(stream, r); err != nil {
			return closed(stream, err)
		}
	}
}

// closed is the reason for which a stream cannot be sent to.
func closed(s discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, err error) error {
	if errors.Is(err, io.EOF) {
		if _, e := s.Recv(); e != nil {
			return e
		}
	}
	return err
}

func known(versions map[string]string) map[string]string {
	out := map[string]string{}
	for n, v := range versions {
		if v != "" {
			out[n] = v
		}
	}
	return out
}

// take keeps a response, acknowledges it, asks for what it refers to, and puts all
// in force when nothing is missing.
func (d *discoverer) take(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, r *discovery.DeltaDiscoveryResponse) error {
	typ := r.GetTypeUrl()
	ack := &discovery.DeltaDiscoveryRequest{TypeUrl: typ, ResponseNonce: r.GetNonce()}
	if !slices.Contains(translate.Types, typ) {
		ack.ErrorDetail = &statuspb.Status{Code: 3, Message: "type is not known"}
		return stream.Send(ack)
	}
	var refused []error
	for _, x := range r.GetResources() {
		if err := d.state.Put(typ, x.GetName(), x.GetResource()); err != nil {
			refused = append(refused, fmt.Errorf("%s: %w", x.GetName(), err))
			continue
		}
		d.versions[typ][x.GetName()] = x.GetVersion()
		delete(d.pending[typ], x.GetName())
	}
	for _, name := range r.GetRemovedResources() {
		d.state.Remove(typ, name)
		delete(d.pending[typ], name)
		d.versions[typ][name] = ""
		if typ == translate.TypeCluster || typ == translate.TypeListener {
			delete(d.versions[typ], name)
		}
	}
	if err := errors.Join(refused...); err != nil {
		ack.ErrorDetail = &statuspb.Status{Code: 3, Message: err.Error()}
		d.log.Warn("part of the configuration cannot be carried out", base.KeyKind, typ, base.KeyError, err)
	}
	if err := stream.Send(ack); err != nil {
		return err
	}
	switch typ {
	case translate.TypeCluster:
		if err := d.subscribe(stream, translate.TypeEndpoint); err != nil {
			return err
		}
	case translate.TypeListener:
		if err := d.subscribe(stream, translate.TypeRoute); err != nil {
			return err
		}
	}
	// A cluster whose endpoints are on their way must not be used yet.
	if len(d.pending[translate.TypeEndpoint])+len(d.pending[translate.TypeRoute]) > 0 {
		return nil
	}
	if !d.whole && !(d.state.Has(translate.TypeCluster) && d.state.Has(translate.TypeListener)) {
		return nil
	}
	if err := d.apply(); err != nil {
		d.log.Warn("configuration is not wholly in force", base.KeyError, err)
	}
	if !d.whole {
		d.whole = true
		close(d.first)
	}
	return nil
}

// subscribe asks for what is newly referred to, and no longer for what is not.
func (d *discoverer) subscribe(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, typ string) error {
	wanted := map[string]bool{}
	r := &discovery.DeltaDiscoveryRequest{TypeUrl: typ}
	for _, n := range d.state.Wanted(typ) {
		wanted[n] = true
		if _, ok := d.versions[typ][n]; !ok && !d.pending[typ][n] {
			d.pending[typ][n] = true
			r.ResourceNamesSubscribe = append(r.ResourceNamesSubscribe, n)
		}
	}
	for _, names := range []map[string]bool{keys(d.versions[typ]), d.pending[typ]} {
		for n := range names {
			if !wanted[n] {
				r.ResourceNamesUnsubscribe = append(r.ResourceNamesUnsubscribe, n)
				delete(d.versions[typ], n)
				delete(d.pending[typ], n)
				d.state.Remove(typ, n)
			}
		}
	}
	if len(r.ResourceNamesSubscribe)+len(r.ResourceNamesUnsubscribe) == 0 {
		return nil
	}
	return stream.Send(r)
}

func keys(m map[string]string) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}
