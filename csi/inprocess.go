package csi

import (
	"context"
	"fmt"
	"strings"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// A Server is a driver's side of the three services.
type Server interface {
	csipb.IdentityServer
	csipb.ControllerServer
	csipb.NodeServer
}

// InProcess returns a driver whose calls are made directly: no socket, no
// goroutine, the same interface.
func InProcess(s Server) *Driver {
	return newDriver(directConn{s}, "", nil)
}

// Register puts a driver's services on a gRPC server, for those who come by socket.
func Register(r grpc.ServiceRegistrar, s Server) {
	csipb.RegisterIdentityServer(r, s)
	csipb.RegisterControllerServer(r, s)
	csipb.RegisterNodeServer(r, s)
}

// directConn calls the handlers that protoc made, without a transport.
type directConn struct{ server Server }

var _ grpc.ClientConnInterface = directConn{}

// Invoke implements grpc.ClientConnInterface. method is "/csi.v1.Node/NodeStageVolume".
func (c directConn) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	handler := handlerOf(method)
	if handler == nil {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	resp, err := handler(c.server, ctx, func(in any) error {
		// The handler has made its own message: neither side keeps the other's.
		return assign(in, args)
	}, nil)
	if err != nil {
		return status.Convert(err).Err()
	}
	return assign(reply, resp)
}

func assign(to, from any) error {
	target, ok1 := to.(proto.Message)
	source, ok2 := from.(proto.Message)
	if !ok1 || !ok2 {
		return fmt.Errorf("csi: %T and %T are not both messages", to, from)
	}
	proto.Merge(target, source)
	return nil
}

type handler = func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)

func handlerOf(method string) handler {
	service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	if !ok {
		return nil
	}
	for _, d := range []*grpc.ServiceDesc{&csipb.Identity_ServiceDesc, &csipb.Controller_ServiceDesc, &csipb.Node_ServiceDesc} {
		if d.ServiceName != service {
			continue
		}
		for i := range d.Methods {
			if d.Methods[i].MethodName == name {
				return handler(d.Methods[i].Handler)
			}
		}
	}
	return nil
}

// NewStream implements grpc.ClientConnInterface; the three services have no streams.
func (directConn) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Error(codes.Unimplemented, "no streams")
}
