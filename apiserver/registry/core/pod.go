package core

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/defaults"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func pods() *registry.Resource {
	s := registry.Funcs[*corev1.Pod]{
		DefaultFunc:    defaults.Pod,
		PrepareCreate:  preparePod,
		PrepareUpdate:  preparePodUpdate,
		ValidateCreate: func(_ context.Context, pod *corev1.Pod) field.ErrorList { return validation.Pod(pod) },
		ValidateChange: func(_ context.Context, pod, old *corev1.Pod) field.ErrorList { return validation.PodUpdate(pod, old) },
		WarningsFunc:   podWarnings,
	}
	return &registry.Resource{
		GVR:              version.WithResource("pods"),
		Kind:             "Pod",
		Singular:         "pod",
		ShortNames:       []string{"po"},
		Categories:       []string{"all"},
		Namespaced:       true,
		New:              kind.Make[corev1.Pod],
		NewList:          kind.Make[corev1.PodList],
		Strategy:         s,
		Status:           podStatus(),
		SelectableFields: podSelectable,
		Fields:           podFields,
		Graceful:         podGraceful,
	}
}

var podSelectable = []string{"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
	"spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName"}

func podFields(obj runtime.Object) fields.Set {
	pod := obj.(*corev1.Pod)
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         fmt.Sprint(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}

// podWarnings looks at new pods only: what updates them is seldom a person.
func podWarnings(_ context.Context, pod, old *corev1.Pod) []string {
	if old != nil {
		return nil
	}
	list := validation.PodWarnings(&pod.Spec, &pod.ObjectMeta, nil)
	if bad := utilvalidation.IsDNS1123Label(pod.Name); len(bad) > 0 {
		list = append(list, fmt.Sprintf("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: %v", bad))
	}
	return list
}

// podGraceful gives a running pod the time that it asks for: its kubelet ends
// the containers and then deletes it for good. A pod that is on no node, or has
// ended, goes at once.
func podGraceful(_ context.Context, obj runtime.Object, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	pod := obj.(*corev1.Pod)
	var period int64
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
	case options.GracePeriodSeconds != nil:
		period = *options.GracePeriodSeconds
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		period = *pod.Spec.TerminationGracePeriodSeconds
	}
	if period < 0 {
		period = 1
	}
	options.GracePeriodSeconds = &period
	return true
}
