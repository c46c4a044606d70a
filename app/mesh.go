package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/ca"
	"github.com/periplus/periplus/mesh/crd"
	"github.com/periplus/periplus/mesh/edge"
	"github.com/periplus/periplus/mesh/inject"
	"github.com/periplus/periplus/mesh/pilot"
	"github.com/periplus/periplus/mesh/publish"
	"github.com/periplus/periplus/mesh/sidecar/bin"
	"github.com/periplus/periplus/mesh/validate"
)

// A meshSwitch turns the mesh on when the first namespace joins it. Its zero value is
// for a server without a mesh.
type meshSwitch struct {
	wanted chan struct{} // has one element when a namespace wants it

	mu      sync.Mutex    // guards the following
	settled chan struct{} // closed when sidecars can be injected, or that has failed
	failed  error
}

func newMeshSwitch() *meshSwitch {
	return &meshSwitch{wanted: make(chan struct{}, 1), settled: make(chan struct{})}
}

func (m *meshSwitch) want() {
	select {
	case m.wanted <- struct{}{}:
	default:
	}
}

// settle tells who waits that the mesh is on, or why it is not.
func (m *meshSwitch) settle(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = err
	select {
	case <-m.settled:
	default:
		close(m.settled)
	}
}

// again lets those wait who come while it is tried once more.
func (m *meshSwitch) again() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed, m.settled = nil, make(chan struct{})
}

// wait returns when the mesh is on.
func (m *meshSwitch) wait(ctx context.Context) error {
	m.mu.Lock()
	settled := m.settled
	m.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != nil {
		return apierrors.NewInternalError(fmt.Errorf("the mesh cannot be started: %w", m.failed))
	}
	return nil
}

func meshed(labels map[string]string) bool {
	return labels[mesh.LabelInjection] == "enabled" || labels[mesh.LabelMesh] == "enabled"
}

// Name implements admission.Plugin.
func (m *meshSwitch) Name() string { return "MeshNamespace" }

// Validate implements admission.Validator: a namespace joins the mesh when the mesh
// is there, so that no pod in it is made without a sidecar.
func (m *meshSwitch) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Resource.Resource != "namespaces" || a.Resource.Group != "" || a.Subresource != "" || a.DryRun ||
		a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	ns, ok := a.Object.(*corev1.Namespace)
	if !ok || !meshed(ns.Labels) {
		return nil
	}
	m.want()
	return m.wait(ctx)
}

// plugins are those that the API server asks besides its own.
func (s *controlPlane) plugins() []admission.Plugin {
	if s.mesh == nil {
		return nil
	}
	return []admission.Plugin{s.mesh}
}

// meshStage waits for a namespace that wants a mesh, and then runs its control plane.
// Until then it costs a handler among those of namespaces.
func (s *controlPlane) meshStage() stage {
	s.mesh = newMeshSwitch()
	return stage{name: "mesh", after: []string{"apiserver"}, run: func(ctx context.Context, ready func()) error {
		informer := s.shared.Core().V1().Namespaces().Informer()
		look := func(obj any) {
			if ns, ok := obj.(*corev1.Namespace); ok && meshed(ns.Labels) {
				s.mesh.want()
			}
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }})
		if err != nil {
			return err
		}
		ready()
		select {
		case <-ctx.Done():
			return nil
		case <-s.mesh.wanted:
		}
		if err := informer.RemoveEventHandler(registration); err != nil {
			return err
		}
		// A mesh that cannot be run takes nothing else along.
		log := s.log.With(base.KeyComponent, "mesh")
		for {
			err := s.runMesh(ctx, log)
			if ctx.Err() != nil {
				return nil
			}
			s.mesh.settle(err)
			log.Error("The mesh cannot be run, trying again", base.KeyError, err, base.KeyDuration, meshRetry.String())
			t := time.NewTimer(meshRetry)
			select {
			case <-ctx.Done():
				t.Stop()
				return nil
			case <-t.C:
			}
			s.mesh.again()
		}
	}}
}

// meshRetry is how long to wait before the mesh is started again.
const meshRetry = 10 * time.Second

// meshUser makes the mesh's objects: in the process only, there is no certificate for it.
const meshUser = "system:periplus:mesh"

// runMesh makes what the mesh needs and serves it until ctx ends.
func (s *controlPlane) runMesh(ctx context.Context, log *slog.Logger) error {
	start := time.Now()
	config := s.api.ClientConfig(meshUser, "system:masters")
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	authority, err := ca.Open(ctx, c)
	if err != nil {
		return err
	}
	if err := crd.Apply(ctx, dyn); err != nil {
		return err
	}
	discovery, err := listen(s.config.BindAddress, mesh.DiscoveryPort, "bind-address")
	if err != nil {
		return err
	}
	hooks, err := listen("127.0.0.1", mesh.WebhookPort, "bind-address")
	if err != nil {
		_ = discovery.Close()
		return err
	}
	callers := ca.NewTokenAuthenticator(c)
	identity := ca.NewWorkload(authority, edge.Identity)
	p := pilot.New(pilot.Config{Informers: s.shared, Dynamic: dyn, Domain: s.config.ClusterDomain, Callers: callers, Journey: s.record, Shift: s.spans.Shift, Log: log})
	roots := publish.NewRoots(c, authority.Root())
	server := meshServer(authority)
	p.Register(server)
	certificates := ca.NewService(authority, callers, log)
	certificates.Signed = s.certificateSigned
	certificates.Register(server)
	return base.RunAll(ctx,
		base.Component{Name: "configuration", Run: p.Run},
		base.Component{Name: "webhooks", Run: func(ctx context.Context) error { return serveWebhooks(ctx, hooks, authority, roots, s.record, log) }},
		base.Component{Name: "edges of other nodes", Run: (&edge.Publisher{Client: c, Certificates: identity, Root: authority.Root(), Log: log}).Run},
		base.Component{Name: "discovery", Run: func(ctx context.Context) error { return serveGRPC(ctx, server, discovery) }},
		base.Component{Name: "objects", Run: func(ctx context.Context) error {
			if err := publish.ControlPlane(ctx, c, s.config.NodeName, s.nodeIP); err != nil {
				return err
			}
			select {
			case <-p.Ready():
			case <-ctx.Done():
				return nil
			}
			if err := publish.Webhooks(ctx, c, inject.Configuration(authority.Root()), validate.Configuration(authority.Root())); err != nil {
				return err
			}
			s.mesh.settle(nil)
			log.Info("Mesh is on", base.KeyDuration, time.Since(start).Round(time.Millisecond).String())
			<-ctx.Done()
			return nil
		}},
	)
}

// certificateSigned tells the journey of a pod that has become no ready one yet.
func (s *controlPlane) certificateSigned(caller mesh.Caller, start time.Time) {
	pod, err := s.shared.Core().V1().Pods().Lister().Pods(caller.Namespace).Get(caller.Pod)
	if caller.Pod == "" || err != nil || conditions.PodReady(pod) {
		return
	}
	s.record.Record(journey.Step("mesh", "certificate signed", "Pod", pod, start).With("identity", caller.Identity.String()))
}

func meshServer(a *ca.Authority) *grpc.Server {
	secure := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, GetCertificate: a.ServerCertificate}
	return grpc.NewServer(
		grpc.Creds(credentials.NewTLS(secure)),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 15 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 60 * time.Second, Timeout: 20 * time.Second}),
		grpc.MaxConcurrentStreams(1000),
	)
}

func serveGRPC(ctx context.Context, server *grpc.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// serveWebhooks answers the API server of this process, over the loopback interface.
func serveWebhooks(ctx context.Context, l net.Listener, a *ca.Authority, roots *publish.Roots, record journey.Recorder, log *slog.Logger) error {
	mux := http.NewServeMux()
	mux.Handle(inject.Path, inject.NewHandler(inject.Config{
		Image: sidecarImage(), Prepare: roots.Ensure, Journey: record, Log: log,
	}))
	mux.Handle(validate.Path, validate.Handler())
	secure := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: a.ServerCertificate}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: requestHeaderTimeout, TLSConfig: secure}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("webhooks on port %s: %w", strconv.Itoa(mesh.WebhookPort), err)
	}
	return nil
}

// sidecarImage is what sidecars run: the small program, unless this peri was built
// without it.
func sidecarImage() inject.Image {
	if bin.Present() {
		return inject.Image{Name: mesh.ProxyImage + ":" + Release, Init: []string{"/sidecar", "init"}, Proxy: []string{"/sidecar", "proxy"}, Wait: []string{"/sidecar", "wait"}}
	}
	return inject.Image{Name: mesh.WholeImage + ":" + Release, Init: []string{"/peri", "mesh-init"}, Proxy: []string{"/peri", "mesh-proxy"}, Wait: []string{"/peri", "mesh-wait"}}
}

// programs are the images that a node makes of what peri carries inside.
func programs(c *Config) []image.Program {
	return []image.Program{{
		Name: mesh.ProxyImage, Version: Release, File: "sidecar",
		Extract: func() (string, error) { return bin.Extract(filepath.Join(c.containersDir(), "bin")) },
	}}
}
