package aggregator

import (
	"context"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/periplus/periplus/apiserver/discovery"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
)

// managed is the label of APIServices that the server keeps: once at its start, or always.
const (
	managed = "kube-aggregator.kubernetes.io/automanaged"
	onStart = "onstart"
	always  = "true"
)

// replaceable are group versions whose APIService an extension API server may take
// over; they are this server's again when it has gone.
var replaceable = sets.New(schema.GroupVersion{Group: "metrics.k8s.io", Version: "v1beta1"})

// localState is what is known about local APIServices. Run's alone.
type localState struct {
	builtIn sets.Set[schema.GroupVersion]
	failed  bool
}

// served are the group versions of built-in resources. The group of APIServices itself
// has none, as upstream.
func (s *Server) served() sets.Set[schema.GroupVersion] {
	out := sets.New[schema.GroupVersion]()
	for _, l := range s.config.Rest.Listings() {
		if !l.Resource.JSONOnly && l.GVR.Group != apiregistrationv1.GroupName {
			out.Insert(l.GVR.GroupVersion())
		}
	}
	return out
}

// custom are the group versions of definitions.
func (s *Server) custom() sets.Set[schema.GroupVersion] {
	out := sets.New[schema.GroupVersion]()
	objects, err := s.config.Rest.List(definitions, "")
	if err != nil {
		return out
	}
	for _, obj := range objects {
		d := obj.(*apiextensionsv1.CustomResourceDefinition)
		if !apihelpers.IsCRDConditionTrue(d, apiextensionsv1.Established) {
			continue
		}
		for _, v := range d.Spec.Versions {
			if v.Served {
				out.Insert(schema.GroupVersion{Group: d.Spec.Group, Version: v.Name})
			}
		}
	}
	return out
}

func nameOf(gv schema.GroupVersion) string { return gv.Version + "." + gv.Group }

// localService is the APIService of a group version that this server serves.
func localService(gv schema.GroupVersion, when string) *apiregistrationv1.APIService {
	o := discovery.Priority(gv)
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(gv), Labels: map[string]string{managed: when}},
		Spec:       apiregistrationv1.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: o.Group, VersionPriority: o.Version},
	}
}

// register makes the APIServices that are missing, corrects those that are kept, and
// deletes those of group versions that are not served any more. What was made for the
// start is looked at once.
func (s *Server) register(ctx context.Context, all []*apiregistrationv1.APIService, first bool) {
	current := make(map[string]*apiregistrationv1.APIService, len(all))
	for _, a := range all {
		current[a.Name] = a
	}
	first = first || s.local.failed
	custom := s.custom()
	var group errgroup.Group
	group.SetLimit(64)
	want := func(gv schema.GroupVersion, when string) {
		now := current[nameOf(gv)]
		switch wanted := localService(gv, when); {
		case when == onStart && !first:
		case now == nil:
			group.Go(func() error { return s.create(ctx, wanted) })
		case now.Labels[managed] == "" || now.Labels[managed] == onStart && !first:
		case now.Spec.Service != nil && replaceable.Has(gv):
		case now.Spec.Service != nil || now.Spec.GroupPriorityMinimum != wanted.Spec.GroupPriorityMinimum || now.Spec.VersionPriority != wanted.Spec.VersionPriority:
			group.Go(func() error { return s.correct(ctx, wanted) })
		}
	}
	for gv := range s.local.builtIn {
		when := onStart
		if replaceable.Has(gv) {
			when = always
		}
		want(gv, when)
	}
	for gv := range custom {
		if !s.local.builtIn.Has(gv) {
			want(gv, always)
		}
	}
	for name, a := range current {
		gv := schema.GroupVersion{Group: a.Spec.Group, Version: a.Spec.Version}
		kept := a.Labels[managed] == always || a.Labels[managed] == onStart && first
		if kept && !custom.Has(gv) && !s.local.builtIn.Has(gv) {
			group.Go(func() error { return s.config.Rest.Unmake(ctx, apiServices, "", name) })
		}
	}
	err := group.Wait()
	s.local.failed = err != nil && first
	if err != nil && ctx.Err() == nil {
		s.config.Log.Warn("APIServices of this server could not be kept", base.KeyError, err)
	}
}

func (s *Server) create(ctx context.Context, a *apiregistrationv1.APIService) error {
	objects := s.config.Rest.Objects(apiServices)
	if err := objects.Note(nil, a, ""); err != nil {
		return err
	}
	_, err := objects.Create(ctx, a, "", rest.Write{Strategy: objects.Resource.Strategy, Internal: true})
	if apierrors.IsAlreadyExists(err) {
		return nil // there will be an event
	}
	return err
}

// correct gives an APIService the spec that it should have.
func (s *Server) correct(ctx context.Context, wanted *apiregistrationv1.APIService) error {
	objects := s.config.Rest.Objects(apiServices)
	_, _, err := objects.Update(ctx, "", wanted.Name, func(current runtime.Object) (runtime.Object, error) {
		out := current.DeepCopyObject().(*apiregistrationv1.APIService)
		out.Spec = wanted.Spec
		return out, objects.Note(current, out, "")
	}, rest.Write{Strategy: objects.Resource.Strategy, Internal: true})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// markLocal says that an APIService without a Service is available.
func (s *Server) markLocal(ctx context.Context, a *apiregistrationv1.APIService) {
	c := conditionOf(a)
	if a.Spec.Service != nil || c != nil && c.Status == apiregistrationv1.ConditionTrue && c.Reason == "Local" {
		return
	}
	s.setCondition(ctx, a.Name, a.UID, apiregistrationv1.APIServiceCondition{
		Type: apiregistrationv1.Available, Status: apiregistrationv1.ConditionTrue, Reason: "Local", Message: "Local APIServices are always available",
	})
}

// write changes an APIService's status.
func (s *Server) write(ctx context.Context, name string, change func(*apiregistrationv1.APIService) error) error {
	objects := s.config.Rest.Objects(apiServices)
	_, _, err := objects.Update(ctx, "", name, func(current runtime.Object) (runtime.Object, error) {
		out := current.DeepCopyObject().(*apiregistrationv1.APIService)
		if err := change(out); err != nil {
			return nil, err
		}
		return out, objects.Note(current, out, "status")
	}, rest.Write{Strategy: registry.Funcs[*apiregistrationv1.APIService]{}, Subresource: "status", Internal: true})
	return err
}
