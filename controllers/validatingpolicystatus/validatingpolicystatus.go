package validatingpolicystatus

import (
	"context"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	applyv1 "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/discovery/cached/memory"
	listers "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/restmapper"

	"github.com/periplus/periplus/controllers"
)

const name = "validatingadmissionpolicy-status-controller"

// Controller declares the check of types.
func Controller() controllers.Controller {
	policies := []schema.GroupVersionResource{admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")}
	return controllers.Controller{Name: name, Workers: 5, Reads: policies, Writes: policies, New: build}
}

type reconciler struct {
	*controllers.Setup
	policies listers.ValidatingAdmissionPolicyLister
	checker  func() *validating.TypeChecker
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	informer := s.Informers.Admissionregistration().V1().ValidatingAdmissionPolicies()
	s.Watch(informer.Informer(), controllers.On(func(_, now *admissionregistrationv1.ValidatingAdmissionPolicy) {
		if now != nil && now.Generation > now.Status.ObservedGeneration {
			s.Queue.Add(controllers.KeyOf(now))
		}
	}))
	return &reconciler{s, informer.Lister(), sync.OnceValue(func() *validating.TypeChecker {
		kinds := s.Client.Discovery()
		return &validating.TypeChecker{
			SchemaResolver: &resolver.ClientDiscoveryResolver{Discovery: kinds},
			RestMapper:     restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds)),
		}
	})}, nil
}

// Reconcile checks a policy that changed since it was checked.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	p, err := r.policies.Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || p.Generation <= p.Status.ObservedGeneration {
		return 0, err
	}
	types := applyv1.TypeChecking()
	for _, w := range r.checker().Check(p) {
		types = types.WithExpressionWarnings(applyv1.ExpressionWarning().WithFieldRef(w.FieldRef).WithWarning(w.Warning))
	}
	status := applyv1.ValidatingAdmissionPolicyStatus().WithObservedGeneration(p.Generation).WithTypeChecking(types)
	_, err = r.Client.AdmissionregistrationV1().ValidatingAdmissionPolicies().ApplyStatus(ctx,
		applyv1.ValidatingAdmissionPolicy(p.Name).WithStatus(status), metav1.ApplyOptions{FieldManager: name, Force: true})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}
