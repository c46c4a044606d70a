package apitest

import (
	"context"
	"errors"
	"log/slog"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Version is the version of Kubernetes that is served.
const Version = "v1.37.2"

// API are the controllers that look after objects of the API and nothing else: with
// them namespaces can be deleted and owners' dependants go, each namespace has its
// default service account and the cluster's authority.
func API() []string {
	return []string{
		"namespace-controller", "garbage-collector-controller", "serviceaccount-controller", "root-ca-certificate-publisher-controller",
		"clusterrole-aggregation-controller", "ttl-after-finished-controller",
	}
}

// An Environment is an API server of its own. Set fields, Start it, Stop it. The zero
// value is an empty cluster.
type Environment struct {
	// Scheme is not needed; it is here for suites that set it.
	Scheme *runtime.Scheme
	// Config is an administrator's after Start. One that is set before is used with
	// UseExistingCluster.
	Config *rest.Config
	// KubeConfig is the same as a kubeconfig file's content.
	KubeConfig []byte

	// CRDs and what is in files of CRDDirectoryPaths (files or directories) is
	// installed by Start, as CRDInstallOptions say.
	CRDs                  []*apiextensionsv1.CustomResourceDefinition
	CRDDirectoryPaths     []string
	ErrorIfCRDPathMissing bool
	CRDInstallOptions     CRDInstallOptions
	// WebhookInstallOptions are installed by Start, and lead to a server that the test
	// runs on LocalServingHost and LocalServingPort.
	WebhookInstallOptions WebhookInstallOptions

	// Controllers that run: their names as in --controllers, "*" for all. None by
	// default. See API.
	Controllers []string
	// Scheduler runs the scheduler.
	Scheduler bool
	// ServiceAccounts makes pods need the service account that they name, as in a
	// cluster; the default one is made by a controller (see API). Without it, as in
	// envtest, pods need none.
	ServiceAccounts bool
	// Etcd keeps objects in an embedded etcd, in a temporary directory, instead of in
	// memory: every write is on disk before it is acknowledged.
	Etcd bool
	// Address is where the server listens; default: a free port of 127.0.0.1.
	Address string
	// Log tells what the server does; default: nobody.
	Log *slog.Logger

	// UseExistingCluster makes Start use the cluster of Config, and only install.
	UseExistingCluster *bool

	// These are not needed; they are here for suites that set them.
	BinaryAssetsDirectory        string
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string
	ControlPlaneStartTimeout     time.Duration
	ControlPlaneStopTimeout      time.Duration
	AttachControlPlaneOutput     bool

	server *server
}

// ErrStarted is returned by Start when the environment runs already.
var ErrStarted = errors.New("apitest: the environment has been started already")

// Start runs the API server and returns how an administrator reaches it. The server
// is ready, and what was to be installed is served.
func (e *Environment) Start() (*rest.Config, error) {
	if e.server != nil {
		return nil, ErrStarted
	}
	if e.UseExistingCluster != nil && *e.UseExistingCluster {
		if e.Config == nil {
			return nil, errors.New("apitest: UseExistingCluster needs Config")
		}
		return e.Config, e.install(context.Background())
	}
	s, err := start(e)
	if err != nil {
		return nil, err
	}
	e.server = s
	if e.Config, e.KubeConfig, err = s.admin(); err == nil {
		err = e.install(s.ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e.Config, nil
}

// Stop ends the server and all that Start has started, and waits for it. What
// UseExistingCluster has found stays.
func (e *Environment) Stop() error {
	s := e.server
	e.server = nil
	return errors.Join(s.stop(), e.WebhookInstallOptions.Cleanup())
}

// install makes the definitions and webhooks.
func (e *Environment) install(ctx context.Context) error {
	if err := e.WebhookInstallOptions.prepare(); err != nil {
		return err
	}
	o := &e.CRDInstallOptions
	o.CRDs = append(o.CRDs, e.CRDs...)
	o.Paths = append(o.Paths, e.CRDDirectoryPaths...)
	o.ErrorIfPathMissing = o.ErrorIfPathMissing || e.ErrorIfCRDPathMissing
	o.WebhookOptions = e.WebhookInstallOptions
	made, err := installCRDs(ctx, e.Config, o)
	if err != nil {
		return err
	}
	e.CRDs = made
	return e.WebhookInstallOptions.install(ctx, e.Config)
}
