package registry

import (
	"context"
	"net/netip"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/authz"
)

// A Resource is one kind of object that the API server stores and serves.
type Resource struct {
	// GVR is the version in which objects are stored and, without Also, served.
	GVR        schema.GroupVersionResource
	Kind       string
	Singular   string // "pod"
	ShortNames []string
	Categories []string
	Namespaced bool

	// New and NewList make empty objects of the stored version.
	New     func() runtime.Object
	NewList func() runtime.Object

	// StoragePrefix is the path below /registry, by default GVR.Resource
	// (upstream's exceptions: "services/specs", "services/endpoints", "minions", "controllers").
	StoragePrefix string

	// Strategy holds the kind's own rules for the main resource.
	Strategy Strategy
	// Status holds the rules for /status; nil means that there is no such subresource.
	Status Strategy
	// Scale gives access to the replica count; nil means no /scale.
	Scale *Scale

	// Views are further subresources that show the same object under rules of
	// their own: ephemeralcontainers, resize, finalize, approval.
	Views map[string]Strategy

	// SelectableFields lists the field selectors that are understood besides
	// metadata.name and metadata.namespace; Fields returns their values.
	SelectableFields []string
	Fields           func(obj runtime.Object) fields.Set

	// Table prints the kind for kubectl; nil prints name and age.
	Table *Table

	// Deprecated, if not empty, is the warning that goes with every answer.
	Deprecated string

	// KeepItemType keeps kind and apiVersion in the items of JSON lists, as
	// upstream does for custom resources.
	KeepItemType bool
	// ListKind is the kind of lists, by default Kind and "List".
	ListKind string
	// JSONOnly kinds have no protobuf form and no strategic merge patches (custom resources).
	JSONOnly bool
	// Unserved says that the stored version is not served, only those in Also.
	Unserved bool
	// StoredAs, if not nil, is the version in which objects lie in the store where that
	// is not GVR's: upstream keeps the older of two versions while a server of the
	// release before may have to read it.
	StoredAs *Served
	// Self, if not nil, says that objects may lie in the store in any of the versions and
	// are kept in memory as they lie there, each under the kind of its own version: a
	// program of somebody else's converts them when they are asked for. It is the stored
	// version, with From and Prepare from any other. Read decodes what is stored.
	Self *Served
	Read func(stored []byte) (runtime.Object, error)
	// AlsoStored are further versions in which objects may lie in the store, besides
	// those in Also: written by upstream, or by a release before.
	AlsoStored []Served
	// StoredAsJSON says that upstream stores the kind as JSON, not protobuf.
	StoredAsJSON bool

	// Also lists further group versions under which the same stored objects are
	// served (events.k8s.io/v1 for Event, autoscaling/v1 for HorizontalPodAutoscaler).
	Also []Served

	// Begin hooks run inside a write, after validation and before the store.
	Hooks Hooks

	// Deletes in two steps, when Graceful is not nil: it reports whether the
	// object must first be marked (deletionTimestamp, grace period) and who removes
	// it later; it sets options.GracePeriodSeconds to what applies.
	Graceful func(ctx context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool
	// Dependents says what becomes of what an object owns when a deletion does not say it;
	// DeletionWarning is told to who does not say it.
	Dependents      Dependents
	DeletionWarning string
	// Marked, if not nil, changes an object that is about to be marked for deletion
	// for the first time (finalizers of the kind, conditions).
	Marked func(obj runtime.Object)

	// Verbs restricts the verbs (tokenreviews and the access reviews only have create).
	// nil means all.
	Verbs []string
	// Create, if not nil, answers create requests instead of the store (reviews).
	Create func(ctx context.Context, obj runtime.Object) (runtime.Object, error)
	// Live, if not nil, makes the objects of a kind that is not stored; they can be
	// got and listed (metrics, component statuses).
	Live Live
}

// A Live makes the objects of a kind that is not stored.
type Live interface {
	// Get returns an object or a NotFound API error.
	Get(ctx context.Context, namespace, name string) (runtime.Object, error)
	// List returns the objects of a namespace ("" for all) in the order of their
	// names. It may return more than the selectors ask for.
	List(ctx context.Context, namespace string, l labels.Selector, f fields.Selector) ([]runtime.Object, error)
}

// Served is one more group version of a Resource. From and To convert; the
// objects that they are given are not modified.
type Served struct {
	GV      schema.GroupVersion
	New     func() runtime.Object
	NewList func() runtime.Object
	From    func(stored runtime.Object) (runtime.Object, error)
	To      func(served runtime.Object) (runtime.Object, error)
	// Prepare, if not nil, converts many stored objects at once; From then has them at hand.
	Prepare func(stored []runtime.Object) error
	// Own is what holds for this version alone; nil for versions that differ in form only.
	Own *View
}

// A View is what a version of a kind shows and demands, where versions differ in
// more than form. Objects given to it are of the stored version.
type View struct {
	Strategy         Strategy
	Status           Strategy
	Scale            *Scale
	Table            *Table
	SelectableFields []string
	Fields           func(obj runtime.Object) fields.Set
	Deprecated       string
}

// View returns what holds for the stored version.
func (r *Resource) View() *View {
	return &View{
		Strategy: r.Strategy, Status: r.Status, Scale: r.Scale, Table: r.Table,
		SelectableFields: r.SelectableFields, Fields: r.Fields, Deprecated: r.Deprecated,
	}
}

// A Decoder is an object that reads its JSON form by rules of its own: it drops
// what its schema does not know and fills defaults. strict lists what a strict
// client wants to be told: unknown and duplicate fields.
type Decoder interface {
	runtime.Object
	MarshalJSON() ([]byte, error)
	DecodeStrict(data []byte) (strict []error, err error)
}

// Scale maps a kind to autoscaling/v1 Scale.
type Scale struct {
	Get func(obj runtime.Object) (*autoscalingv1.Scale, error)
	// Set writes the wanted number of replicas into obj.
	Set func(obj runtime.Object, replicas int32) error
}

// A Table prints objects as kubectl shows them (meta.k8s.io/v1 Table).
type Table struct {
	Columns []metav1.TableColumnDefinition
	// Rows returns the cells of obj's rows, most often one.
	Rows func(obj runtime.Object) [][]any
}

// Env is what resources need from their server.
type Env struct {
	ServiceCIDRs []netip.Prefix
	NodePortLow  int32 // first node port, 30000
	NodePortHigh int32 // last node port, 32767
	Objects      Reader
	// Authz, if not nil, decides about parts of objects that need a permission of their own.
	Authz authz.Mode
}

// A Reader reads current objects from the server's own caches. Objects are
// shared: do not modify them.
type Reader interface {
	// Get returns the object or a NotFound API error.
	Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error)
	// List returns all objects of a namespace ("" for all namespaces).
	List(gvr schema.GroupVersionResource, namespace string) ([]runtime.Object, error)
}

// A Syncer is a Reader that can be brought up to date.
type Syncer interface {
	Reader
	// Sync returns when objects are as new as the store is at the time of the call.
	Sync(ctx context.Context) error
}

// An Awaiter is a Reader that can wait for an object that is about to be made.
type Awaiter interface {
	Reader
	// Await is Get that waits until the object is there or ctx ends; then the error
	// is a NotFound API error.
	Await(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error)
}

// Prefix returns the resource's path below /registry.
func (r *Resource) Prefix() string {
	if r.StoragePrefix != "" {
		return r.StoragePrefix
	}
	return r.GVR.Resource
}

// ListKindOf returns the kind of lists in every version.
func (r *Resource) ListKindOf() string {
	if r.ListKind != "" {
		return r.ListKind
	}
	return r.Kind + "List"
}

// KeptAs returns the group, version and kind of what lies in the store.
func (r *Resource) KeptAs() schema.GroupVersionKind {
	if r.StoredAs != nil {
		return r.StoredAs.GV.WithKind(r.Kind)
	}
	return r.GVK()
}

// GVK returns the stored group, version and kind.
func (r *Resource) GVK() schema.GroupVersionKind {
	return r.GVR.GroupVersion().WithKind(r.Kind)
}

// Dependents is what the deletion of an owner means for what it owns.
type Dependents int

const (
	// DeleteDependents leaves them to the garbage collector, which deletes them.
	DeleteDependents Dependents = iota
	// OrphanDependents keeps them.
	OrphanDependents
	// NoDependents is for kinds that the garbage collector never waits for.
	NoDependents
)
