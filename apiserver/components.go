package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/admission/policy"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/subresource"
)

// special gives the resources that are answered or guarded by other parts of the server
// what does so.
func (s *Server) special(r *registry.Resource) {
	switch r.GVR {
	case corev1.SchemeGroupVersion.WithResource("componentstatuses"):
		r.Live = componentStatuses{s}
	case corev1.SchemeGroupVersion.WithResource("bindings"):
		r.Create = subresource.Bind(subresource.Config{Server: s.rest, Journey: s.config.Journey})
	}
	if hooks, ok := (policy.Guard{Objects: s.rest, Authorizer: expressions{s}}).Hooks()[r.GVR]; ok {
		r.Hooks = hooks
	}
}

// componentStatuses asks the store and the parts of the cluster how they are.
type componentStatuses struct{ *Server }

var _ registry.Live = componentStatuses{}

// Get implements registry.Live.
func (s componentStatuses) Get(ctx context.Context, _, name string) (runtime.Object, error) {
	check := s.checks()[name]
	if check == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("componentstatuses"), name)
	}
	return componentStatus(ctx, name, check), nil
}

// List implements registry.Live.
func (s componentStatuses) List(ctx context.Context, _ string, _ labels.Selector, _ fields.Selector) ([]runtime.Object, error) {
	var out []runtime.Object
	checks := s.checks()
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		out = append(out, componentStatus(ctx, name, checks[name]))
	}
	return out, nil
}

func componentStatus(ctx context.Context, name string, check func(context.Context) error) *corev1.ComponentStatus {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	condition := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"}
	if err := check(ctx); err != nil {
		condition.Status, condition.Message, condition.Error = corev1.ConditionFalse, err.Error(), err.Error()
	}
	return &corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Conditions: []corev1.ComponentCondition{condition}}
}

func (s componentStatuses) checks() map[string]func(context.Context) error {
	checks := map[string]func(context.Context) error{
		"controller-manager": s.holdsLease("kube-controller-manager"),
		"scheduler":          s.holdsLease("kube-scheduler"),
		"etcd-0": func(ctx context.Context) error {
			_, err := s.config.Store.Revision(ctx)
			return err
		},
	}
	maps.Copy(checks, s.config.Components)
	return checks
}

// holdsLease reports an error unless somebody leads under a name.
func (s *Server) holdsLease(name string) func(context.Context) error {
	return func(context.Context) error {
		obj, err := s.rest.Get(coordinationv1.SchemeGroupVersion.WithResource("leases"), metav1.NamespaceSystem, name)
		if err != nil {
			return fmt.Errorf("nobody has ever led as %s", name)
		}
		spec := &obj.(*coordinationv1.Lease).Spec
		if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil || spec.HolderIdentity == nil || *spec.HolderIdentity == "" {
			return fmt.Errorf("nobody leads as %s", name)
		}
		if over := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second); time.Now().After(over) {
			return fmt.Errorf("the lease of %s ended at %s", name, over.UTC().Format(time.RFC3339))
		}
		return nil
	}
}
