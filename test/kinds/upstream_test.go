package kinds

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/periplus/periplus/apiserver/request"
)

// An outcome is how a server took a write.
type outcome struct {
	undecoded bool
	panicked  bool
	errs      []string // causes, sorted: type, path, message
	stored    []byte   // as JSON
	warnings  []string // sorted
}

// A write is what is sent to both.
type write struct {
	kind, verb, subresource string
	old, object             []byte
}

type allowAll struct{}

func (allowAll) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// noResource knows no kinds; nobody is asked, because parameters need no permission here.
type noResource struct{}

func (noResource) Resolve(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{}, errors.New("there are none")
}

func namespaceClient() typedcorev1.NamespaceInterface {
	return fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inNamespace}}).CoreV1().Namespaces()
}

const inNamespace = "default"

var created = metav1.Unix(1700000000, 0)

// recorder collects warnings as upstream sends them.
type recorder struct{ list []string }

func (r *recorder) AddWarning(_, text string) { r.list = append(r.list, text) }

func metadata(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

func (k *kind) gvk() schema.GroupVersionKind { return k.gvr.GroupVersion().WithKind(k.kind) }

// context is that of a request which both servers understand.
func (k *kind) context(rec *recorder, name string, w *write) context.Context {
	ns := inNamespace
	if !k.main.NamespaceScoped() {
		ns = ""
	}
	alice := &user.DefaultInfo{Name: "alice", Groups: []string{"system:authenticated"}}
	ctx := genericrequest.WithNamespace(context.Background(), ns)
	ctx = genericrequest.WithRequestInfo(ctx, &genericrequest.RequestInfo{
		IsResourceRequest: true, Verb: w.verb, APIPrefix: "apis", APIGroup: k.gvr.Group, APIVersion: k.gvr.Version,
		Namespace: ns, Resource: k.gvr.Resource, Subresource: w.subresource, Name: name,
	})
	ctx = genericrequest.WithUser(ctx, alice)
	ctx = request.With(ctx, &request.State{User: alice})
	return warning.WithWarningRecorder(ctx, rec)
}

// internal reads an object as upstream's server does.
func (k *kind) internal(raw []byte) (runtime.Object, bool) {
	obj, err := legacyscheme.Scheme.New(k.gvk())
	if err != nil || json.Unmarshal(raw, obj) != nil {
		return nil, false
	}
	legacyscheme.Scheme.Default(obj)
	in, err := legacyscheme.Scheme.ConvertToVersion(obj, schema.GroupVersion{Group: k.gvr.Group, Version: runtime.APIVersionInternal})
	return in, err == nil
}

// upstream lets upstream's strategy s take a write.
func (k *kind) upstream(s rest.RESTUpdateStrategy, w *write) (out outcome) {
	defer catch(&out)
	obj, ok := k.internal(w.object)
	if !ok {
		return outcome{undecoded: true}
	}
	rec, m := &recorder{}, metadata(obj)
	var err error
	if w.old == nil {
		fresh(m)
		err = rest.BeforeCreate(k.main, k.context(rec, m.Name, w), obj)
	} else {
		old, _ := k.internal(w.old)
		if m.ResourceVersion == "" {
			m.ResourceVersion = metadata(old).ResourceVersion
		}
		err = rest.BeforeUpdate(s, k.context(rec, metadata(old).Name, w), obj, old)
	}
	if err != nil {
		return outcome{errs: causes(err)}
	}
	external, err := legacyscheme.Scheme.ConvertToVersion(obj, k.gvr.GroupVersion())
	if err != nil {
		return outcome{errs: causes(err)}
	}
	legacyscheme.Scheme.Default(external)
	return k.outcome(external, rec.list)
}

// fresh is what generic code sets before it asks a strategy.
func fresh(m *metav1.ObjectMeta) {
	m.UID, m.CreationTimestamp = "uid", created
	m.DeletionTimestamp, m.DeletionGracePeriodSeconds, m.SelfLink = nil, nil, ""
}

func (k *kind) outcome(obj runtime.Object, warnings []string) outcome {
	obj.GetObjectKind().SetGroupVersionKind(k.gvk())
	raw, err := json.Marshal(obj)
	if err != nil {
		return outcome{errs: causes(err)}
	}
	slices.Sort(warnings)
	return outcome{stored: raw, warnings: warnings}
}

// causes lists what an error says, in order.
func causes(err error) []string {
	var s *apierrors.StatusError
	if !errors.As(err, &s) {
		return []string{err.Error()}
	}
	if s.ErrStatus.Details == nil || len(s.ErrStatus.Details.Causes) == 0 {
		return []string{s.ErrStatus.Message}
	}
	var out []string
	for _, c := range s.ErrStatus.Details.Causes {
		out = append(out, strings.TrimPrefix(string(c.Type), "FieldValue")+" "+c.Field+": "+plain(c.Message))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// catch makes an outcome of a panic.
func catch(out *outcome) {
	if r := recover(); r != nil {
		*out = outcome{panicked: true, errs: []string{fmt.Sprintf("PANIC %v %.600s", r, debug.Stack())}}
	}
}
