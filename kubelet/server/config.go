package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// Kubelet is what the server needs to know from the kubelet.
type Kubelet interface {
	// Pods returns the node's pods with their newest status. They are not modified.
	Pods() []*corev1.Pod
	// Pod returns one of them.
	Pod(namespace, name string) (*corev1.Pod, bool)
	// RunningPods returns pods as the runtime sees them: metadata and spec.containers only.
	RunningPods(context.Context) ([]*corev1.Pod, error)
	// SandboxID returns the runtime's ID of the pod's sandbox, if it has one that is ready.
	SandboxID(uid types.UID) (string, bool)
	// Exited returns a channel that is closed when the container has ended and its
	// log is complete; for a container that is unknown or has ended it is closed already.
	Exited(containerID string) <-chan struct{}
	// Summary returns the answer of /stats/summary.
	Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsv1alpha1.Summary, error)
	// ResourceStats returns what /metrics/resource is made of: processors and memory, read once.
	ResourceStats(ctx context.Context) (*statsv1alpha1.Summary, error)
	// Configuration returns the answer of /configz, {"kubeletconfig": …}, as a value that encoding/json can write.
	Configuration() any
	// Healthy returns nil or what is wrong.
	Healthy() error
}

// Runtime is the part of cri.Runtime that the server uses.
type Runtime interface {
	ContainerStatus(context.Context, *runtimeapi.ContainerStatusRequest) (*runtimeapi.ContainerStatusResponse, error)
	ExecSync(context.Context, *runtimeapi.ExecSyncRequest) (*runtimeapi.ExecSyncResponse, error)
	Exec(context.Context, *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error)
	Attach(context.Context, *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error)
	CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) (*runtimeapi.CheckpointContainerResponse, error)
	PortForward(context.Context, *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error)
}

// Config of a Server.
type Config struct {
	Kubelet Kubelet
	Runtime Runtime

	// NodeName is the name in authorization requests.
	NodeName string
	// Address to listen on, "0.0.0.0:10250" by default. Listener, if not nil, is used instead and closed by Run.
	Address  string
	Listener net.Listener
	// Certificate returns the serving certificate for each handshake, so that it can be renewed in place.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCAs returns the authorities for client certificates.
	ClientCAs func() *x509.CertPool
	// Tokens, if not nil, authenticates bearer tokens; see TokenReviews.
	Tokens authenticator.Token
	// Authorizer decides on resource "nodes" with upstream's sub-resources; see SubjectAccessReviews.
	// Members of system:masters are let through without it.
	Authorizer authorizer.UnconditionalAuthorizer
	// CheckpointDir is where checkpoints of containers are written.
	CheckpointDir string
	// Metrics serves /metrics and what is below it, if not nil.
	Metrics http.Handler
	// Log defaults to slog.Default().
	Log *slog.Logger
}

func (c *Config) validate() error {
	switch {
	case c.Kubelet == nil:
		return errors.New("kubelet/server: config: Kubelet is nil")
	case c.Runtime == nil:
		return errors.New("kubelet/server: config: Runtime is nil")
	case c.Certificate == nil:
		return errors.New("kubelet/server: config: Certificate is nil")
	case c.ClientCAs == nil:
		return errors.New("kubelet/server: config: ClientCAs is nil")
	case c.Authorizer == nil:
		return errors.New("kubelet/server: config: Authorizer is nil")
	}
	if c.Address == "" {
		c.Address = "0.0.0.0:10250"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return nil
}
