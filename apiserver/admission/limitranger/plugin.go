package limitranger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

// annotation tells which amounts of a pod were set here.
const annotation = "kubernetes.io/limit-ranger"

var ranges = corev1.SchemeGroupVersion.WithResource("limitranges")

type plugin struct{ objects registry.Reader }

var (
	_ admission.Mutator   = plugin{}
	_ admission.Validator = plugin{}
)

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return "LimitRanger" }

// items are the limits of a namespace.
func (p plugin) items(namespace string) (all []*corev1.LimitRangeItem, err error) {
	list, err := p.objects.List(ranges, namespace)
	for _, obj := range list {
		r := obj.(*corev1.LimitRange)
		for i := range r.Spec.Limits {
			all = append(all, &r.Spec.Limits[i])
		}
	}
	return all, err
}

// Admit implements admission.Mutator.
func (p plugin) Admit(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || a.Operation != admission.Create || a.Subresource != "" {
		return nil
	}
	items, err := p.items(a.Namespace)
	if err != nil {
		return err
	}
	for _, item := range items {
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		var set []string
		for i := range pod.Spec.Containers {
			set = append(set, complete(&pod.Spec.Containers[i], item, "container")...)
		}
		for i := range pod.Spec.InitContainers {
			set = append(set, complete(&pod.Spec.InitContainers[i], item, "init container")...)
		}
		if len(set) > 0 {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotation, "LimitRanger plugin set: "+strings.Join(set, "; "))
		}
	}
	return nil
}

// complete sets what a container does not name, and says what that was.
func complete(c *corev1.Container, item *corev1.LimitRangeItem, kind string) (set []string) {
	for _, half := range []struct {
		name     string
		list     *corev1.ResourceList
		defaults corev1.ResourceList
	}{{"request", &c.Resources.Requests, item.DefaultRequest}, {"limit", &c.Resources.Limits, item.Default}} {
		var names []string
		for name, q := range half.defaults {
			if _, named := (*half.list)[name]; named {
				continue
			}
			if *half.list == nil {
				*half.list = corev1.ResourceList{}
			}
			(*half.list)[name] = q.DeepCopy()
			names = append(names, string(name))
		}
		if len(names) > 0 {
			slices.Sort(names)
			set = append(set, fmt.Sprintf("%s %s for %s %s", strings.Join(names, ", "), half.name, kind, c.Name))
		}
	}
	return set
}

// Validate implements admission.Validator.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	var check func(*corev1.LimitRangeItem) []error
	switch obj := a.Object.(type) {
	case *corev1.Pod:
		if (a.Operation != admission.Create || a.Subresource != "") && (a.Operation != admission.Update || a.Subresource != "resize") {
			return nil
		}
		check = func(item *corev1.LimitRangeItem) []error { return ofPod(obj, item) }
	case *corev1.PersistentVolumeClaim:
		if a.Subresource != "" {
			return nil
		}
		check = func(item *corev1.LimitRangeItem) []error {
			if item.Type != corev1.LimitTypePersistentVolumeClaim {
				return nil
			}
			return ofClaim(obj.Spec.Resources.Requests, item)
		}
	default:
		return nil
	}
	items, err := p.items(a.Namespace)
	if err != nil {
		return err
	}
	var errs []error
	for _, item := range items {
		errs = append(errs, check(item)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, utilerrors.NewAggregate(errs))
}

func ofPod(pod *corev1.Pod, item *corev1.LimitRangeItem) (errs []error) {
	switch item.Type {
	case corev1.LimitTypeContainer:
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			errs = append(errs, bounds(item, c.Resources.Requests, c.Resources.Limits)...)
		}
	case corev1.LimitTypePod:
		options := resourcehelper.PodResourcesOptions{}
		errs = bounds(item, resourcehelper.PodRequests(pod, options), resourcehelper.PodLimits(pod, options))
	}
	return errs
}
