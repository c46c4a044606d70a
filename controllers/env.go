package controllers

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/periplus/periplus/client/objects"
	"github.com/periplus/periplus/journey"
)

// Env is what the controllers share. Client and Informers are required.
type Env struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory

	// ClientFor returns the client of one controller, under an identity of its
	// own. Nil gives Client to all.
	ClientFor func(controller string) kubernetes.Interface

	// Metadata reads and deletes objects of any kind, for the garbage collector
	// and namespace deletion. Nil leaves those two out.
	Metadata metadata.Interface

	// MetadataFor is ClientFor for Metadata. Nil gives Metadata to all.
	MetadataFor func(controller string) metadata.Interface

	// ConfigFor returns how one controller reaches the API by requests of its own: the
	// scale of any kind, metrics. Nil leaves the controllers out that need it.
	ConfigFor func(controller string) *rest.Config

	// Discovery lists the kinds that there are. Nil means the Client's.
	Discovery discovery.DiscoveryInterface

	// Objects streams the metadata of every object. Nil means informers on Metadata.
	Objects objects.Source

	// Events makes event recorders; a record.EventBroadcaster is one. Nil drops events.
	Events EventSource

	// Metrics measure the work queues; nil measures nothing.
	Metrics *Metrics

	Journey journey.Recorder           // nil means journey.Discard
	Clock   clock.WithDelayedExecution // nil means the real one
	Log     *slog.Logger               // nil means slog.Default()

	// Elect calls lead while this process leads, with a context that ends when
	// leadership is lost. Nil leads at once and for ever.
	Elect func(ctx context.Context, lead func(context.Context) error) error

	Options Options
}

// An EventSource makes event recorders. record.EventBroadcaster satisfies it.
type EventSource interface {
	NewRecorder(scheme *runtime.Scheme, source corev1.EventSource) record.EventRecorderLogger
}

// Options are the settings of the controllers. The zero value of a field means
// its default, which is upstream's unless said otherwise.
type Options struct {
	ClusterCIDRs     []string // pod ranges, one or one of each family: 10.42.0.0/16; none leaves node IPAM out
	NodeCIDRMaskIPv4 int      // 24
	NodeCIDRMaskIPv6 int      // 64
	ServiceCIDRs     []string // never given to nodes
	RootCA           []byte   // PEM, published as kube-root-ca.crt in each namespace; none leaves it out
	// LegacyToken signs a token of a service account for a Secret; none leaves such Secrets empty.
	LegacyToken       func(account *corev1.ServiceAccount, secret string) (string, error)
	SigningCert       []byte        // PEM: the cluster's certificate authority
	SigningKey        []byte        // PEM
	NodeGracePeriod   time.Duration // without a heartbeat until a node is Unknown: 50 s
	NodeStartupGrace  time.Duration // the same for a node that never reported: 60 s
	TerminatedPods    int           // finished pods kept before the oldest are deleted: 12,500; negative: all
	EndpointsPerSlice int32         // 100
	ReservedPorts     []int32       // TCP ports of nodes that no load balancer may take
	LegacyTokenPeriod time.Duration // how long a token in a Secret may be unused: 365 days
	CertificateLife   time.Duration // how long signed certificates are valid at most: 365 days

	Workers     map[string]int // by a controller's name; those not named have what they declare
	Autoscaling Autoscaling    // as a whole: the defaults hold if no field is set
	Eviction    Eviction       // as a whole: the defaults hold if no field is set
}

func (e *Env) withDefaults() *Env {
	out := *e
	if out.ClientFor == nil {
		out.ClientFor = func(string) kubernetes.Interface { return e.Client }
	}
	if out.Events == nil {
		out.Events = noEvents{}
	}
	if out.Journey == nil {
		out.Journey = journey.Discard
	}
	if out.Clock == nil {
		out.Clock = clock.RealClock{}
	}
	if out.Log == nil {
		out.Log = slog.Default()
	}
	if out.Elect == nil {
		out.Elect = func(ctx context.Context, lead func(context.Context) error) error { return lead(ctx) }
	}
	if out.Discovery == nil {
		out.Discovery = out.Client.Discovery()
	}
	if out.Objects == nil && out.Metadata != nil {
		out.Objects = NewMetadataSource(out.Metadata, out.Discovery, out.Log)
	}
	o := &out.Options
	setDefault(&o.NodeCIDRMaskIPv4, 24)
	setDefault(&o.NodeCIDRMaskIPv6, 64)
	setDefault(&o.NodeGracePeriod, 50*time.Second)
	setDefault(&o.NodeStartupGrace, 60*time.Second)
	setDefault(&o.TerminatedPods, 12500)
	setDefault(&o.EndpointsPerSlice, 100)
	setDefault(&o.LegacyTokenPeriod, 365*24*time.Hour)
	setDefault(&o.CertificateLife, 365*24*time.Hour)
	setDefault(&o.Autoscaling, DefaultAutoscaling())
	setDefault(&o.Eviction, DefaultEviction())
	return &out
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// noEvents makes recorders that drop what they get.
type noEvents struct{}

func (noEvents) NewRecorder(*runtime.Scheme, corev1.EventSource) record.EventRecorderLogger {
	return &record.FakeRecorder{} // without a channel it drops
}
