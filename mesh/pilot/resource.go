package pilot

import (
	"strconv"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Types of resources, in the order in which they are sent.
const (
	typeCluster  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	typeEndpoint = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	typeListener = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typeRoute    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

var pushOrder = []string{typeCluster, typeEndpoint, typeListener, typeRoute}

// A resource is one of xDS, ready to be sent.
type resource struct {
	name    string
	version string // a hash of its bytes
	body    *anypb.Any
}

// resources are some of one type, by name.
type resources map[string]*resource

// add marshals a message. Ours always can be.
func (r resources) add(name string, m proto.Message) { r[name] = newResource(name, m) }

func newResource(name string, m proto.Message) *resource {
	body := pack(m)
	return &resource{name: name, version: strconv.FormatUint(xxhash.Sum64(body.Value), 36), body: body}
}

// pack wraps a message; maps in it are in a fixed order, so that equal ones have equal bytes.
func pack(m proto.Message) *anypb.Any {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic("a message of ours cannot be marshalled: " + err.Error()) // invalid UTF-8: the API server refuses it
	}
	return &anypb.Any{TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()), Value: b}
}
