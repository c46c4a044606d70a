package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/controllers"
	controllersall "github.com/periplus/periplus/controllers/all"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/scheduler"
	schedulerall "github.com/periplus/periplus/scheduler/all"
	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/etcd"
)

// controlPlane is the server side of one machine, as far as it has been started.
type controlPlane struct {
	config *Config
	log    *slog.Logger
	nodeIP netip.Addr
	id     *identities
	store  store.Store
	// quorum makes etcd one of several members; nil: alone.
	quorum *etcd.Cluster
	// whole says that controllers and scheduler run in this process, too.
	whole  bool
	api    *apiserver.Server
	record journey.Recorder
	spans  *journey.Log
	// connect returns how a component reaches the API.
	connect func(component string) (*restclient.Config, error)
	// shared are the informers of all components in this process.
	shared informers.SharedInformerFactory
	// metrics are those of this process's other components.
	metrics *processMetrics
	// mesh is nil where there is none.
	mesh *meshSwitch
}

// etcdStage opens the store.
func (s *controlPlane) etcdStage() stage {
	return stage{name: "etcd", run: func(ctx context.Context, ready func()) error {
		opened, err := s.openStore(ctx)
		if err != nil {
			return err
		}
		s.store = opened
		if s.quorum != nil {
			if err := s.vote(ctx); err != nil {
				return errors.Join(err, opened.Close())
			}
		}
		ready()
		<-ctx.Done()
		return opened.Close()
	}}
}

func (s *controlPlane) openStore(ctx context.Context) (store.Store, error) {
	if len(s.config.EtcdEndpoints) == 0 {
		return etcd.Start(ctx, etcd.Config{Dir: s.config.etcdDir(), Socket: s.config.etcdSocket(), Cluster: s.quorum, Log: s.log.With(base.KeyComponent, "etcd")})
	}
	c := clientConfig(s.config)
	tls, err := etcdTLS(s.config)
	if err != nil {
		return nil, err
	}
	c.TLS = tls
	return etcd.Dial(c)
}

func clientConfig(c *Config) clientv3.Config { return clientv3.Config{Endpoints: c.EtcdEndpoints} }

// apiStage runs the API server.
func (s *controlPlane) apiStage() stage {
	return stage{name: "apiserver", after: []string{"etcd"}, run: func(ctx context.Context, ready func()) error {
		listener, err := listen(s.config.BindAddress, s.config.APIPort, "api-port")
		if err != nil {
			return err
		}
		versions, err := s.config.runtimeConfig()
		if err != nil {
			_ = listener.Close()
			return err
		}
		trust, err := s.trust()
		if err != nil {
			_ = listener.Close()
			return err
		}
		authentication, err := s.config.AuthenticationConfig.options(trust)
		if err != nil {
			_ = listener.Close()
			return err
		}
		clients, _, err := s.clientCAs()
		if err != nil {
			_ = listener.Close()
			return err
		}
		proxy, err := s.proxyClient()
		if err != nil {
			_ = listener.Close()
			return err
		}
		plugins, err := s.config.AdmissionConfig.options()
		if err != nil {
			_ = listener.Close()
			return err
		}
		s.api, err = apiserver.New(apiserver.Config{
			Admission: plugins,
			Metrics:   s.metrics, Tracing: s.config.Tracing, MaxInFlight: s.config.MaxInFlight, MaxMutatingInFlight: s.config.MaxMutatingInFlight, NoFairness: !s.config.Fairness,
			RequestTimeout: s.config.RequestTimeout.Duration, MinRequestTimeout: time.Duration(s.config.MinRequestTimeout) * time.Second,
			Encryption: s.config.EncryptionConfig.options(), Authentication: authentication, Trust: trust, ProxyClient: proxy, AggregateByClusterIP: !s.config.AggregatorRouting,
			Store: s.store, Version: Version,
			Advertise:    s.advertise(),
			ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(s.config.ServiceCIDR)},
			Certificate:  s.id.apiserver.Server, ClientCAs: clients, KubeletTLS: s.id.kubeletTLS(),
			ServiceAccountKey: s.id.accounts, Issuer: "https://kubernetes.default.svc." + s.config.ClusterDomain,
			Authorization: s.config.AuthorizationConfig.options(),
			Journey:       s.record, Shared: s.quorum != nil, RuntimeConfig: versions, Components: s.components(), LogDir: filepath.Dir(s.config.logsDir()),
			Extra: map[string]http.Handler{journey.Path: http.HandlerFunc(s.serveJourneys), quorumPath: http.HandlerFunc(s.serveQuorum)}, Plugins: s.plugins(), Audit: s.config.AuditOptions, Log: s.log.With(base.KeyComponent, "apiserver"),
		})
		if err != nil {
			_ = listener.Close()
			return err
		}
		return base.RunAll(ctx,
			base.Component{Name: "serve", Run: func(ctx context.Context) error { return s.api.Run(ctx, listener) }},
			base.Component{Name: "reload files", Run: s.reloadFiles},
			base.Component{Name: "ready", Run: func(ctx context.Context) error {
				select {
				case <-s.api.Ready():
					if err := s.inProcess(); err != nil {
						return err
					}
					ready()
				case <-ctx.Done():
				}
				<-ctx.Done()
				return nil
			}},
		)
	}}
}

// inProcess lets the components of this process reach the API directly.
func (s *controlPlane) inProcess() error {
	s.connect = func(component string) (*restclient.Config, error) {
		r, ok := clientNames(s.config.NodeName)[component]
		if !ok {
			return nil, fmt.Errorf("component %q has no identity", component)
		}
		return s.api.ClientConfig(r.CommonName, r.Organizations...), nil
	}
	c, err := s.client("controller-manager")
	if err != nil {
		return err
	}
	s.shared = client.NewFactory(c, s.api.Source())
	return nil
}

func (s *controlPlane) client(component string) (*kubernetes.Clientset, error) {
	config, err := s.connect(component)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// controllersStage runs the controllers.
func (s *controlPlane) controllersStage() stage {
	return stage{name: "controllers", after: []string{"apiserver"}, run: func(ctx context.Context, ready func()) error {
		config, err := s.connect("controller-manager")
		if err != nil {
			return err
		}
		c, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		meta, err := metadata.NewForConfig(config)
		if err != nil {
			return err
		}
		list, err := controllers.Select(controllersall.Controllers(), s.config.Controllers)
		if err != nil {
			return err
		}
		broadcaster, stop := recordEvents(ctx, c)
		defer stop()
		env := &controllers.Env{
			Client: c, Informers: s.shared, Metadata: meta,
			ClientFor: func(name string) kubernetes.Interface {
				return each(s, name, func(c *restclient.Config) (kubernetes.Interface, error) { return kubernetes.NewForConfig(c) })
			},
			MetadataFor: func(name string) metadata.Interface { return each(s, name, metadata.NewForConfig) },
			ConfigFor: func(name string) *restclient.Config {
				return each(s, name, func(c *restclient.Config) (*restclient.Config, error) { return c, nil })
			},
			Events: broadcaster, Journey: s.record, Metrics: s.metrics.queues,
			Log: s.log.With(base.KeyComponent, "controllers"),
			Options: controllers.Options{
				ClusterCIDRs: []string{s.config.ClusterCIDR}, ServiceCIDRs: []string{s.config.ServiceCIDR}, RootCA: s.id.ca.PEM, LegacyToken: s.legacyToken, LegacyTokenPeriod: s.config.LegacyTokenPeriod.Duration, SigningCert: s.id.ca.PEM, SigningKey: s.id.ca.KeyPEM(),
				ReservedPorts: []int32{int32(s.config.APIPort), int32(s.config.KubeletPort)}, //nolint:gosec // validated
			},
		}
		s.config.tune(&env.Options)
		if s.api != nil {
			env.Objects = s.api
		}
		if s.quorum != nil {
			env.Elect = func(ctx context.Context, lead func(context.Context) error) error {
				return elected(ctx, c, "kube-controller-manager", s.config.NodeName, env.Log, lead)
			}
		}
		ready()
		return controllers.Run(ctx, env, list)
	}}
}

// identityOf returns the configuration of one controller, under an identity of
// its own: its service account in kube-system, to which a cluster role is bound.
func (s *controlPlane) identityOf(controller string) (*restclient.Config, error) {
	account := accountOf(controller)
	if s.api != nil {
		return s.api.ClientConfig("system:serviceaccount:kube-system:"+account, "system:serviceaccounts", "system:serviceaccounts:kube-system"), nil
	}
	config, err := s.connect("controller-manager")
	if err != nil {
		return nil, err
	}
	return accountConfig(config, account)
}

// each makes a client of some kind for a controller.
func each[T any](s *controlPlane, controller string, make func(*restclient.Config) (T, error)) T {
	config, err := s.identityOf(controller)
	if err == nil {
		var c T
		if c, err = make(config); err == nil {
			return c
		}
	}
	// The same configuration has made a client before; only its account differs.
	panic(fmt.Sprintf("client of %s: %v", controller, err))
}

// schedulerStage runs the scheduler.
func (s *controlPlane) schedulerStage() stage {
	return stage{name: "scheduler", after: []string{"apiserver"}, run: func(ctx context.Context, ready func()) error {
		c, err := s.client("scheduler")
		if err != nil {
			return err
		}
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: c.EventsV1()})
		defer broadcaster.Shutdown()
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			return err
		}
		log := s.log.With(base.KeyComponent, "scheduler")
		recorder := broadcaster.NewRecorder(scheme.Scheme, scheduler.DefaultName)
		lead := func(ctx context.Context) error {
			sched, err := scheduler.New(scheduler.Config{
				Client: c, Informers: s.shared, Journey: s.record, Metrics: s.metrics.scheduler, Profiles: schedulerall.Profiles(), Recorder: recorder,
			})
			if err != nil {
				return err
			}
			ready()
			return sched.Run(ctx)
		}
		if s.quorum == nil {
			return lead(ctx)
		}
		ready()
		return elected(ctx, c, "kube-scheduler", s.config.NodeName, log, lead)
	}}
}

// listen opens a TCP port; a port in use is named with its option.
func listen(address string, port int, option string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: port %d is in use by another program: stop it, or choose another port with --%s", option, port, option)
	case err != nil:
		return nil, fmt.Errorf("%s: listen on %s: %w", option, address, err)
	}
	return l, nil
}
