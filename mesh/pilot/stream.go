package pilot

import (
	"context"
	"errors"
	"io"
	"maps"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/mesh"
)

// serve is the life of a stream: requests and new worlds, one after the other. What
// differs between the two protocols is in receive, handle and push.
func serve[R interface{ GetNode() *core.Node }](p *Pilot, ctx context.Context, receive func() (R, error), handle func(*session, *World, R) error, push func(*session, *World, string) error) error {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	caller, err := p.caller(ctx)
	if err != nil {
		return err
	}
	first, err := receive()
	if err != nil {
		return err
	}
	s := &session{pilot: p, subs: map[string]*subscription{}, caller: caller, began: time.Now()}
	if s.proxy, err = p.proxyOf(first.GetNode(), caller); err != nil {
		return err
	}
	requests, failed := make(chan R), make(chan error, 1)
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			r, err := receive()
			if err != nil {
				failed <- err
				return
			}
			select {
			case requests <- r:
			case <-done:
				return
			}
		}
	}()
	news := p.join()
	defer p.leave(news)
	p.cfg.Log.Debug("proxy connected", base.KeyID, s.proxy.id)
	world := p.refresh(s)
	if err := handle(s, world, first); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.closing:
			return status.Error(codes.Unavailable, "the control plane is going down")
		case err := <-failed:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case r := <-requests:
			if err := handle(s, world, r); err != nil {
				return err
			}
		case <-news:
			world = p.refresh(s)
			for _, typ := range pushOrder {
				if s.subs[typ] == nil {
					continue
				}
				if err := push(s, world, typ); err != nil {
					return err
				}
			}
		}
	}
}

// caller authenticates a stream.
func (p *Pilot) caller(ctx context.Context) (*mesh.Caller, error) {
	if p.cfg.Callers == nil {
		return nil, nil
	}
	c, err := p.cfg.Callers.Authenticate(ctx)
	switch {
	case errors.Is(err, mesh.ErrUnauthenticated):
		return nil, status.Error(codes.Unauthenticated, err.Error())
	case err != nil:
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &c, nil
}

// proxyOf reads who the proxy says that it is, as far as its caller may be it.
func (p *Pilot) proxyOf(n *core.Node, caller *mesh.Caller) (*proxy, error) {
	px, err := newProxy(n)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if caller != nil && caller.Namespace != px.namespace {
		return nil, status.Errorf(codes.PermissionDenied, "no identities (%s) matched %s/%s", caller.Identity, px.namespace, px.pod)
	}
	return px, nil
}

// refresh returns the newest world, after reading the proxy's pod again.
func (p *Pilot) refresh(s *session) *World {
	if s.proxy.pod != "" {
		if pod, err := p.sources.pods.Pods(s.proxy.namespace).Get(s.proxy.pod); err == nil {
			s.proxy.learn(pod)
		}
	}
	return p.world.Load()
}

// nonce counts the responses of the process.
func (p *Pilot) nonce() string { return strconv.FormatUint(p.nonces.Add(1), 36) }

// StreamAggregatedResources is ADS, state of the world.
func (p *Pilot) StreamAggregatedResources(stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	send := func(s *session, w *World, typ string, sub *subscription, all, changed resources) error {
		what := changed
		if typ == typeCluster || typ == typeListener {
			what = all // of these types a response is everything
		}
		r := &discovery.DiscoveryResponse{VersionInfo: strconv.FormatUint(w.version, 10), TypeUrl: typ, Nonce: p.nonce()}
		r.Resources = make([]*anypb.Any, 0, len(what))
		for _, x := range what {
			r.Resources = append(r.Resources, x.body)
		}
		sub.nonce = r.Nonce
		return stream.Send(r)
	}
	handle := func(s *session, w *World, r *discovery.DiscoveryRequest) error {
		typ := r.GetTypeUrl()
		switch {
		case r.GetErrorDetail() != nil:
			p.refused(s, typ, r.GetErrorDetail().GetMessage())
		case r.GetResponseNonce() != "":
			p.accepted(s, typ)
		}
		sub, known := s.subs[typ], s.subs[typ] != nil
		if known && r.GetResponseNonce() != "" && r.GetResponseNonce() != sub.nonce {
			return nil // about a response before the last
		}
		sub = s.subscription(typ)
		names := map[string]bool{}
		fresh := !known
		for _, n := range r.GetResourceNames() {
			names[n] = true
			fresh = fresh || !sub.names[n]
		}
		fewer := len(names) < len(sub.names)
		sub.names = names
		sub.wildcard = len(names) == 0 && !s.proxy.proxyless
		for n := range sub.sent {
			if !sub.wildcard && !names[n] {
				delete(sub.sent, n)
			}
		}
		if !fresh && (!fewer || r.GetResponseNonce() != "") {
			return nil // an acknowledgement
		}
		all, changed, _ := s.diff(w, typ, sub)
		return send(s, w, typ, sub, all, changed)
	}
	push := func(s *session, w *World, typ string) error {
		sub := s.subs[typ]
		all, changed, removed := s.diff(w, typ, sub)
		if len(changed) == 0 && (len(removed) == 0 || typ == typeRoute || typ == typeEndpoint) {
			return nil
		}
		return send(s, w, typ, sub, all, changed)
	}
	return serve(p, stream.Context(), stream.Recv, handle, push)
}

// DeltaAggregatedResources is ADS, incremental.
func (p *Pilot) DeltaAggregatedResources(stream discovery.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	send := func(w *World, typ string, sub *subscription, changed resources, removed []string) error {
		r := &discovery.DeltaDiscoveryResponse{
			SystemVersionInfo: strconv.FormatUint(w.version, 10), TypeUrl: typ, Nonce: p.nonce(), RemovedResources: removed,
			Resources: make([]*discovery.Resource, 0, len(changed)),
		}
		for _, x := range changed {
			r.Resources = append(r.Resources, &discovery.Resource{Name: x.name, Version: x.version, Resource: x.body})
		}
		sub.nonce = r.Nonce
		return stream.Send(r)
	}
	handle := func(s *session, w *World, r *discovery.DeltaDiscoveryRequest) error {
		typ := r.GetTypeUrl()
		switch {
		case typ == mesh.TypeHop:
			p.hop(s, r.GetResourceNamesSubscribe())
			return nil
		case r.GetErrorDetail() != nil:
			p.refused(s, typ, r.GetErrorDetail().GetMessage())
		case r.GetResponseNonce() != "":
			p.accepted(s, typ)
		}
		known := s.subs[typ] != nil
		sub := s.subscription(typ)
		if !known {
			maps.Copy(sub.sent, r.GetInitialResourceVersions())
			sub.wildcard = len(r.GetResourceNamesSubscribe()) == 0 && !s.proxy.proxyless
		}
		for _, n := range r.GetResourceNamesSubscribe() {
			if n == "*" {
				sub.wildcard = true
				continue
			}
			sub.names[n] = true
			if known || sub.sent[n] == "" {
				delete(sub.sent, n) // asked for again: it is sent again
			}
		}
		for _, n := range r.GetResourceNamesUnsubscribe() {
			if n == "*" {
				sub.wildcard = false
			}
			delete(sub.names, n)
			delete(sub.sent, n)
		}
		if known && len(r.GetResourceNamesSubscribe()) == 0 {
			return nil // an acknowledgement
		}
		_, changed, removed := s.diff(w, typ, sub)
		for _, n := range r.GetResourceNamesSubscribe() {
			if n != "*" && sub.sent[n] == "" {
				removed = append(removed, n) // there is none of that name
			}
		}
		return send(w, typ, sub, changed, removed)
	}
	push := func(s *session, w *World, typ string) error {
		sub := s.subs[typ]
		_, changed, removed := s.diff(w, typ, sub)
		if len(changed) == 0 && len(removed) == 0 {
			return nil
		}
		return send(w, typ, sub, changed, removed)
	}
	return serve(p, stream.Context(), stream.Recv, handle, push)
}

// refused logs what a proxy could not carry out.
func (p *Pilot) refused(s *session, typ, why string) {
	p.cfg.Log.Warn("a proxy has refused its configuration", base.KeyID, s.proxy.id, base.KeyKind, typ, base.KeyError, why)
}
