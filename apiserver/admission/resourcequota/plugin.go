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

// Name is the plug-in's name.
const Name = "ResourceQuota"

type plugin struct {
	objects Objects
	limits  limits
}

var _ admission.Validator = plugin{}

// New returns the plug-in; config is a Configuration in YAML or JSON, or nothing.
func New(objects Objects, config []byte) (admission.Plugin, error) {
	l, err := load(config)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	return plugin{objects, l}, nil
}

func (plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Namespace == "" || a.Object == nil || !p.concerns(a) {
		return nil
	}
	gr := a.Resource.GroupResource()
	list, err := p.objects.List(quotas, a.Namespace)
	if err != nil || len(list) == 0 && p.limits[gr] == nil {
		return err
	}
	now := time.Now()
	whole := quota.Usage(gr, a.Object, now)
	growth := whole
	if a.Operation == admission.Update {
		growth = quota.Growth(whole, quota.Usage(gr, a.Old, now))
	}
	var bills []bill
	var need needs
	if p.limits[gr] != nil {
		need = needs{p.limits.names(gr, whole), p.limits.scopes(gr, a.Object)}
	}
	covered := false
	for _, obj := range list {
		q := obj.(*corev1.ResourceQuota)
		need.scopesOf(q, a.Object)
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
		covered = true
		need.namesOf(names)
		taken := growth
		if a.Operation == admission.Update && !quota.Matches(q, a.Old) {
			taken = whole // it comes into the quota's scope
		}
		if len(quota.Only(taken, names)) > 0 {
			bills = append(bills, bill{q, taken})
		}
	}
	if len(bills) == 0 && (covered || len(growth) == 0) {
		return nil
	}
	if err := need.left(a); err != nil {
		return err
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

// needs are what only a quota allows, by configuration, less what quotas cover.
type needs struct {
	names  []corev1.ResourceName
	scopes []corev1.ScopedResourceSelectorRequirement
}

func (n *needs) namesOf(covered []corev1.ResourceName) {
	n.names = slices.DeleteFunc(n.names, func(name corev1.ResourceName) bool { return slices.Contains(covered, name) })
}

func (n *needs) scopesOf(q *corev1.ResourceQuota, obj runtime.Object) {
	if len(n.scopes) == 0 {
		return
	}
	for _, s := range quota.Scopes(q) {
		if quota.Selects(s, obj) {
			n.scopes = slices.DeleteFunc(n.scopes, func(r corev1.ScopedResourceSelectorRequirement) bool { return r.ScopeName == s.ScopeName })
		}
	}
}

// left refuses if something is needed still.
func (n *needs) left(a *admission.Attributes) error {
	switch {
	case len(n.names) > 0:
		return refuse(a, "insufficient quota to consume: %s", joined(n.names))
	case len(n.scopes) > 0:
		return refuse(a, "insufficient quota to match these scopes: %v", n.scopes)
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
