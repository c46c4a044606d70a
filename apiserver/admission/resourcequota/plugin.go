package resourcequota

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/quota"
)

var quotas = corev1.SchemeGroupVersion.WithResource("resourcequotas")

// Objects is what the plug-in reads and writes.
type Objects interface {
	registry.Reader
	// ChangeStatus writes the status of an object. change gets the current object, which
	// it must not modify; it is called again when another writer was faster.
	ChangeStatus(ctx context.Context, gvr schema.GroupVersionResource, namespace, name string, change func(runtime.Object) (runtime.Object, error)) error
}

type plugin struct{ objects Objects }

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New(objects Objects) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "ResourceQuota" }

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Namespace == "" || a.Object == nil || !p.concerns(a) {
		return nil
	}
	list, err := p.objects.List(quotas, a.Namespace)
	if err != nil || len(list) == 0 {
		return err
	}
	now := time.Now()
	gr := a.Resource.GroupResource()
	whole := quota.Usage(gr, a.Object, now)
	growth := whole
	if a.Operation == admission.Update {
		growth = quota.Growth(whole, quota.Usage(gr, a.Old, now))
	}
	var bills []bill
	for _, obj := range list {
		q := obj.(*corev1.ResourceQuota)
		names := slices.DeleteFunc(quota.Names(q.Spec.Hard), func(n corev1.ResourceName) bool { return !quota.Covers(gr, n) })
		if len(names) == 0 || !quota.Matches(q, a.Object) {
			continue
		}
		if pod, ok := a.Object.(*corev1.Pod); ok {
			if missing := quota.Missing(pod, q.Spec.Hard); missing != "" {
				return refuse(a, "failed quota: %s: must specify %s", q.Name, missing)
			}
		}
		for _, n := range names {
			if _, counted := q.Status.Used[n]; !counted {
				return refuse(a, "status unknown for quota: %s, resources: %s", q.Name, joined(names))
			}
		}
		taken := growth
		if a.Operation == admission.Update && !quota.Matches(q, a.Old) {
			taken = whole // it comes into the quota's scope
		}
		if len(quota.Only(taken, names)) > 0 {
			bills = append(bills, bill{q, taken})
		}
	}
	// What one quota refuses is not charged to another.
	for _, b := range bills {
		if _, err := b.add(a, b.quota); err != nil {
			return err
		}
	}
	if a.DryRun {
		return nil
	}
	for _, b := range bills {
		if err := p.charge(ctx, a, b); err != nil {
			return err
		}
	}
	return nil
}

// A bill is what a write takes of a quota.
type bill struct {
	quota *corev1.ResourceQuota
	taken corev1.ResourceList
}

// concerns reports whether a write can change what is taken: everything when it is made,
// and what can grow later.
func (plugin) concerns(a *admission.Attributes) bool {
	switch a.Operation {
	case admission.Create:
		return a.Subresource == ""
	case admission.Update:
		switch a.Resource.GroupResource() {
		case quota.Pods:
			return a.Subresource == "resize" || a.Subresource == "" && quota.ScopeChanged(a.Old, a.Object)
		case quota.Services, quota.Claims:
			return a.Subresource == ""
		}
	}
	return false
}

// add returns the quota with what is taken, or refuses.
func (b bill) add(a *admission.Attributes, now *corev1.ResourceQuota) (*corev1.ResourceQuota, error) {
	hard := quota.Names(now.Status.Hard)
	wanted := quota.Only(b.taken, hard)
	used := quota.Add(now.Status.Used, wanted)
	if over := quota.Exceeded(quota.Only(used, quota.Names(wanted)), now.Status.Hard); len(over) > 0 {
		return nil, refuse(a, "exceeded quota: %s, requested: %s, used: %s, limited: %s", now.Name, quota.String(quota.Only(wanted, over)),
			quota.String(quota.Only(now.Status.Used, over)), quota.String(quota.Only(now.Status.Hard, over)))
	}
	out := now.DeepCopy()
	out.Status.Used = used
	return out, nil
}

// charge writes the bill into the quota's status, or refuses.
func (p plugin) charge(ctx context.Context, a *admission.Attributes, b bill) error {
	err := p.objects.ChangeStatus(ctx, quotas, b.quota.Namespace, b.quota.Name, func(current runtime.Object) (runtime.Object, error) {
		return b.add(a, current.(*corev1.ResourceQuota))
	})
	if apierrors.IsNotFound(err) {
		return nil // the quota has gone
	}
	return err
}

func refuse(a *admission.Attributes, format string, args ...any) error {
	return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, fmt.Errorf(format, args...))
}

func joined(names []corev1.ResourceName) string {
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = string(n)
	}
	return strings.Join(parts, ",")
}
