package kinds

import (
	"encoding/json"
	"net/netip"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
	"github.com/periplus/periplus/apiserver/registry/certificates"
	"github.com/periplus/periplus/apiserver/registry/core"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/validation"
)

// noObjects is a store with a namespace and nothing else.
type noObjects struct{}

func (noObjects) Get(gvr schema.GroupVersionResource, _, name string) (runtime.Object, error) {
	if gvr.Resource == "namespaces" && name == inNamespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inNamespace}}, nil
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func (noObjects) List(schema.GroupVersionResource, string) ([]runtime.Object, error) { return nil, nil }

// resources are ours.
func resources() map[schema.GroupVersionResource]*registry.Resource {
	env := registry.Env{
		ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16")}, NodePortLow: 30000, NodePortHigh: 32767, Objects: noObjects{},
	}
	out := map[schema.GroupVersionResource]*registry.Resource{}
	for _, r := range all.Resources(env) {
		out[r.GVR] = r
	}
	return out
}

// strategy returns our rules of a subresource, "" for the resource itself.
func strategy(r *registry.Resource, subresource string) registry.Strategy {
	switch r.GVR.Resource + "/" + subresource {
	case "pods/ephemeralcontainers":
		return core.PodEphemeralContainers()
	case "pods/resize":
		return core.PodResize()
	case "namespaces/finalize":
		return core.NamespaceFinalize()
	case "certificatesigningrequests/approval":
		return certificates.Approval()
	}
	switch subresource {
	case "":
		return r.Strategy
	case "status":
		return r.Status
	}
	return r.Views[subresource]
}

// ours lets our strategy s take a write, with what generic code does around it.
func (k *kind) ours(r *registry.Resource, s registry.Strategy, w *write) (out outcome) {
	defer catch(&out)
	obj := r.New()
	if json.Unmarshal(w.object, obj) != nil {
		return outcome{undecoded: true}
	}
	m := metadata(obj)
	m.Namespace = ""
	if r.Namespaced {
		m.Namespace = inNamespace
	}
	ctx := k.context(&recorder{}, m.Name, w)
	var errs field.ErrorList
	var warnings []string
	if w.old == nil {
		s.Default(obj)
		fresh(m)
		m.Generation = 0
		s.PrepareForCreate(ctx, obj)
		errs = append(validation.ObjectMeta(m, r.Namespaced, s.ValidateName), s.Validate(ctx, obj)...)
		warnings = s.Warnings(ctx, obj, nil)
	} else {
		old := r.New()
		_ = json.Unmarshal(w.old, old)
		keep(m, metadata(old))
		s.Default(obj)
		s.PrepareForUpdate(ctx, obj, old)
		errs = append(validation.ObjectMetaUpdate(m, metadata(old), r.Namespaced), s.ValidateUpdate(ctx, obj, old)...)
		if len(errs) == 0 {
			warnings = s.Warnings(ctx, obj, old)
		}
	}
	if errs = validation.UpstreamValues(errs); len(errs) > 0 {
		return outcome{errs: causes(apierrors.NewInvalid(k.gvk().GroupKind(), m.Name, errs))}
	}
	return k.outcome(obj, slices.Concat(warnings, request.From(ctx).Warnings()))
}

// keep is what a client cannot change.
func keep(m, old *metav1.ObjectMeta) {
	if m.ResourceVersion == "" {
		m.ResourceVersion = old.ResourceVersion
	}
	if m.UID == "" {
		m.UID = old.UID
	}
	m.CreationTimestamp, m.Generation = old.CreationTimestamp, old.Generation
	m.DeletionTimestamp, m.DeletionGracePeriodSeconds = old.DeletionTimestamp, old.DeletionGracePeriodSeconds
}
