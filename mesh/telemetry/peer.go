package telemetry

import (
	"encoding/base64"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/mesh"
)

// Headers with which proxies of the mesh tell each other who they are.
const (
	headerPeer   = "x-envoy-peer-metadata"
	headerPeerID = "x-envoy-peer-metadata-id"
)

// Encode is a workload as the value of the header.
func Encode(w mesh.Workload) string {
	text := structpb.NewStringValue
	labels := map[string]*structpb.Value{
		mesh.LabelCanonicalName: text(w.CanonicalName), mesh.LabelCanonicalRevision: text(w.CanonicalRevision),
	}
	if w.App != "" {
		labels["app"] = text(w.App)
	}
	if w.Version != "" {
		labels["version"] = text(w.Version)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(&structpb.Struct{Fields: map[string]*structpb.Value{
		"WORKLOAD_NAME": text(w.Name), "NAMESPACE": text(w.Namespace), "CLUSTER_ID": text(w.Cluster),
		"LABELS": structpb.NewStructValue(&structpb.Struct{Fields: labels}),
	}})
	if err != nil {
		return "" // a name that is not UTF-8
	}
	return base64.StdEncoding.EncodeToString(b)
}

// maxPeers bounds the cache of headers that were read.
const maxPeers = 1024

// Peers reads the header; what it has read once, it remembers.
type Peers struct {
	mu    sync.RWMutex // guards known
	known map[string]*mesh.Workload
}

// Decode returns the workload in a header's value; nil: there is none.
func (p *Peers) Decode(v string) *mesh.Workload {
	if v == "" {
		return nil
	}
	p.mu.RLock()
	w, ok := p.known[v]
	p.mu.RUnlock()
	if ok {
		return w
	}
	w = decode(v)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxPeers {
		p.known = map[string]*mesh.Workload{}
	}
	p.known[v] = w
	return w
}

func decode(v string) *mesh.Workload {
	raw, err := base64.StdEncoding.DecodeString(v)
	if err != nil {
		return nil
	}
	var s structpb.Struct
	if proto.Unmarshal(raw, &s) != nil {
		return nil
	}
	f := s.GetFields()
	labels := map[string]string{}
	for k, l := range f["LABELS"].GetStructValue().GetFields() {
		labels[k] = l.GetStringValue()
	}
	w := mesh.WorkloadOf(f["WORKLOAD_NAME"].GetStringValue(), f["NAMESPACE"].GetStringValue(), labels)
	if c := f["CLUSTER_ID"].GetStringValue(); c != "" {
		w.Cluster = c
	}
	return &w
}

type peerKey struct{}

// InboundPeer reads who the client is and takes the header away.
func (p *Peers) InboundPeer() l7.Filter {
	return l7.FilterFunc(func(x *l7.Exchange) *l7.Reply {
		if v, ok := x.Request.Header.Lookup(headerPeer); ok {
			if w := p.Decode(v); w != nil {
				x.Set(peerKey{}, w)
			}
			x.Request.Header.Del(headerPeer)
			x.Request.Header.Del(headerPeerID)
		}
		return nil
	})
}

// OutboundPeer says who this side is.
func OutboundPeer(w mesh.Workload, id string) l7.Filter {
	value := Encode(w)
	return l7.FilterFunc(func(x *l7.Exchange) *l7.Reply {
		x.Request.Header.Set(headerPeer, value)
		x.Request.Header.Set(headerPeerID, id)
		return nil
	})
}
