package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	goruntime "runtime"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/cni"
	"github.com/periplus/periplus/cni/bridge"
	"github.com/periplus/periplus/containers"
	"github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/containers/image/admin"
	"github.com/periplus/periplus/containers/snapshot/overlayfs"
	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/gateway/crd"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/kubelet/node"
	"github.com/periplus/periplus/kubelet/server"
	"github.com/periplus/periplus/linux/podcgroup"
	"github.com/periplus/periplus/volume"
	volumeall "github.com/periplus/periplus/volume/all"
	"github.com/periplus/periplus/volume/source"
)

// worker is the node side of one machine, as far as it has been started.
type worker struct {
	config  *Config
	log     *slog.Logger
	nodeIP  netip.Addr
	record  journey.Recorder
	network cni.Network
	kubelet atomic.Pointer[kubelet.Kubelet] // nil before it is made
	runtime cri.Runtime
	images  cri.Images
	// embedded is the embedded runtime, nil with another one.
	embedded *containers.Runtime
	// source gives the informers of a component, pods the pods of this node.
	connect func(component string) (*restclient.Config, error)
	shared  func() informers.SharedInformerFactory
	pods    func(kubernetes.Interface) cache.SharedIndexInformer
	nodes   func(kubernetes.Interface) cache.SharedIndexInformer
	// serving is the certificate of the kubelet's server, clientCAs verify its clients.
	serving   func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	clientCAs func() *x509.CertPool
	// together says that the API server is in this process.
	together bool
	// define makes definitions of custom resources that are part of the program; only if together.
	define crd.Definer
	// kept lets the node start without its server; nil: it has the server in itself, or is a part alone.
	kept *checkpoints
	// objectInformers gives shared informers of ConfigMaps and Secrets, or nil to watch single objects.
	objectInformers func(informers.SharedInformerFactory) informers.SharedInformerFactory
}

// runtimeStage opens the images and runs the container runtime, or connects to another one.
func (w *worker) runtimeStage() stage {
	return stage{name: "runtime", run: func(ctx context.Context, ready func()) error {
		if w.config.RuntimeEndpoint != "" {
			r, i, closer, err := cri.Dial(ctx, w.config.RuntimeEndpoint)
			if err != nil {
				return fmt.Errorf("container-runtime-endpoint %s: %w", w.config.RuntimeEndpoint, err)
			}
			w.runtime, w.images = r, i
			ready()
			<-ctx.Done()
			return closer.Close()
		}
		return w.runEmbedded(ctx, ready)
	}}
}

func (w *worker) runEmbedded(ctx context.Context, ready func()) error {
	log := w.log.With(base.KeyComponent, "runtime")
	layers, err := overlayfs.Open(w.config.snapshotsDir(), log)
	if err != nil {
		return err
	}
	defer layers.Close()
	images, err := image.Open(w.config.imagesDir(), image.Options{Layers: layers, Mirrors: w.config.RegistryMirrors, Elsewhere: w.imagePeers(), Programs: programs(w.config), Log: log})
	if err != nil {
		return err
	}
	defer images.Close()
	if _, err := images.EnsureSelf(ctx, "/proc/self/exe", Release); err != nil {
		return fmt.Errorf("make the image periplus.io/peri:%s: %w", Release, err)
	}
	dropped := w.config.imageArchives(images, log)
	dropped.Import(ctx)
	w.network, err = bridge.New(w.bridgeConfig(log))
	if err != nil {
		return err
	}
	if closer, ok := w.network.(io.Closer); ok {
		defer closer.Close()
	}
	w.embedded, err = containers.New(containers.Config{
		StateDir: w.config.containersDir(), RunDir: filepath.Join(w.config.RunDir, "containers"),
		Images: imageSource{images}, Snapshots: layers, Network: &networkSteps{Network: w.network, worker: w},
		OCIRuntime: w.config.OCIRuntime, MonitorPath: w.config.Monitor, CgroupParent: filepath.Join(w.config.CgroupRoot, "periplus"),
		Version: Release, Log: log,
	})
	if err != nil {
		return err
	}
	defer w.embedded.Close()
	w.runtime, w.images = w.embedded, images
	socket, err := listenUnix(w.config.criSocket())
	if err != nil {
		return err
	}
	adminSocket, err := listenUnix(w.config.adminSocket())
	if err != nil {
		_ = socket.Close()
		return err
	}
	return base.RunAll(ctx,
		base.Component{Name: "containers", Run: w.embedded.Run},
		base.Component{Name: "image archives", Run: dropped.Run},
		base.Component{Name: "CRI socket", Run: func(ctx context.Context) error { return cri.Serve(ctx, socket, w.embedded, images) }},
		base.Component{Name: "image socket", Run: func(ctx context.Context) error { return serveHTTP(ctx, adminSocket, admin.Handler(images)) }},
		base.Component{Name: "ready", Run: func(ctx context.Context) error {
			select {
			case <-w.embedded.Ready():
				ready()
			case <-ctx.Done():
			}
			<-ctx.Done()
			return nil
		}},
	)
}

func (w *worker) bridgeConfig(log *slog.Logger) bridge.Config {
	return bridge.Config{
		StateDir:     w.config.networkDir(),
		ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix(w.config.ClusterCIDR)},
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(w.config.ServiceCIDR)},
		Log:          log,
		MTU:          w.podMTU(),
	}
}

// listenUnix opens a socket that only root can use, over a leftover one.
func listenUnix(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, os.Chmod(path, 0o600)
}

// serveHTTP serves until ctx ends.
func serveHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: requestHeaderTimeout}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); err != http.ErrServerClosed { //nolint:errorlint // returned as it is
		return err
	}
	return nil
}

// kubeletStage runs the kubelet and its server.
func (w *worker) kubeletStage(after ...string) stage {
	return stage{name: "kubelet", after: append([]string{"runtime"}, after...), run: func(ctx context.Context, ready func()) error {
		config, err := w.connect("kubelet")
		if err != nil {
			return err
		}
		c, err := kubernetes.NewForConfig(w.kept.reading(config))
		if err != nil {
			return err
		}
		listener, err := listen(w.config.BindAddress, w.config.KubeletPort, "kubelet-port")
		if err != nil {
			return err
		}
		k, parts, err := w.newKubelet(ctx, c)
		if err != nil {
			_ = listener.Close()
			return err
		}
		srv, err := server.New(server.Config{
			Kubelet: k, Runtime: w.runtime, NodeName: w.config.NodeName, Listener: listener,
			Certificate: w.serving, ClientCAs: w.clientCAs,
			CheckpointDir: filepath.Join(w.config.kubeletDir(), "checkpoints"), Metrics: k.Metrics(prometheus.DefaultGatherer),
			Tokens: server.TokenReviews(c), Authorizer: server.SubjectAccessReviews(c),
			Log: w.log.With(base.KeyComponent, "kubelet"),
		})
		if err != nil {
			_ = listener.Close()
			return err
		}
		ready()
		return base.RunAll(ctx, append(parts,
			base.Component{Name: "kubelet", Run: k.Run},
			base.Component{Name: "kubelet server", Run: srv.Run},
		)...)
	}}
}

// newKubelet assembles the kubelet; parts run beside it.
func (w *worker) newKubelet(ctx context.Context, c kubernetes.Interface) (*kubelet.Kubelet, []base.Component, error) {
	log := w.log.With(base.KeyComponent, "kubelet")
	shared := w.shared()
	pods, nodes := w.pods(c), w.nodes(c)
	services := shared.Core().V1().Services()
	serviceInformer := services.Informer()
	// The kubelet needs the volumes and the volumes ask the kubelet.
	var k atomic.Pointer[kubelet.Kubelet]
	broadcaster, stop := recordEvents(ctx, c)
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: w.config.NodeName})
	sources, err := source.New(source.Config{
		Client: c, Informers: w.objectInformers(shared), Log: log,
		Node: func() (*corev1.Node, error) {
			if n := k.Load().Node(); n != nil {
				return n, nil
			}
			return nil, fmt.Errorf("node %s is not registered yet", w.config.NodeName)
		},
		Status: func(p *corev1.Pod) corev1.PodStatus { return k.Load().PodStatus(p) },
		Memory: w.kept.memory(),
		Event: func(p *corev1.Pod, reason, message string) {
			recorder.Event(p, corev1.EventTypeWarning, reason, message)
		},
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	drivers := w.config.drivers(log)
	driven := w.config.csiVolumes(drivers, c, w.record, func() { k.Load().NodeChanged() })
	host, err := volume.NewHost(volume.Config{
		Root: w.config.kubeletDir(), Plugins: volumeall.Plugins(driven), Sources: sources, Claims: volume.LiveClaims{Client: c}, Log: log,
		Retry: func(uid types.UID) { k.Load().Retry(uid) },
		Failed: func(p *corev1.Pod, e *volume.MountError) {
			recorder.Event(p, corev1.EventTypeWarning, "FailedMount", e.Error())
		},
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	sources.OnChange(host.SourceChanged)
	drivers.OnRegister(func(string) { host.RetryFailed() })
	cgroups, err := podcgroup.New(w.config.CgroupRoot)
	if err != nil {
		stop()
		return nil, nil, err
	}
	reserved, err := w.config.reserved()
	if err != nil {
		stop()
		return nil, nil, err
	}
	cgroups.Limit(max(0, int64(goruntime.NumCPU())*1000-reserved.Cpu().MilliValue()), max(0, node.MemoryCapacity()-reserved.Memory().Value()))
	cgroups.LimitPids(w.config.PodPidsLimit)
	config := kubelet.Config{
		NodeName: w.config.NodeName, Client: c, Pods: pods, NodeInformer: nodes, PodsLive: w.kept.podsLive(pods), Statuses: w.kept.statuses(),
		Services: services.Lister(), ServicesSynced: serviceInformer.HasSyncedChecker().Done(), Objects: sources,
		Runtime: w.runtime, Images: w.images, Volumes: host, Cgroups: cgroups,
		Events: recorder, Journey: w.record, Log: log,
		Node:    node.Config{IPs: []net.IP{w.nodeIP.AsSlice()}, Version: Version + "+periplus", Port: int32(w.config.KubeletPort), Dir: w.config.StateDir, Labels: w.config.storageLabels(), VolumesInUse: driven.InUse},
		RootDir: w.config.kubeletDir(), LogDir: w.config.logsDir(), StaticPodPath: w.config.PodManifests,
		ClusterDNS: []string{w.config.ClusterDNS}, ClusterDomain: w.config.ClusterDomain, ResolvConf: w.config.ResolvConf,
	}
	w.config.KubeletConfig.apply(&config)
	made, err := kubelet.New(config)
	if err != nil {
		stop()
		return nil, nil, err
	}
	k.Store(made)
	w.kubelet.Store(made)
	shared.StartWithContext(ctx)
	return made, append(w.storageParts(c, made, drivers, driven, broadcaster), []base.Component{
		{Name: "pods of this node", Run: func(ctx context.Context) error { client.RunInformer(ctx, pods); return nil }},
		{Name: "this node", Run: func(ctx context.Context) error { client.RunInformer(ctx, nodes); return nil }},
		{Name: "volumes", Run: host.Run},
		{Name: "device plug-ins", Run: made.RunDevicePlugins},
		{Name: "volume sources", Run: func(ctx context.Context) error {
			<-ctx.Done()
			stop()
			sources.Close()
			return nil
		}},
	}...), nil
}
