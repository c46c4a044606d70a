package podresizevalidator

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
)

const (
	// Name is the plug-in's.
	Name = "PodResizeValidator"

	causeCapacity metav1.CauseType = "NodeCapacity"
	causePlatform metav1.CauseType = "UnsupportedPlatform"
)

var nodes = corev1.SchemeGroupVersion.WithResource("nodes")

type plugin struct{ objects registry.Reader }

var _ admission.Validator = plugin{}

// New returns the plug-in.
func New(objects registry.Reader) admission.Plugin { return plugin{objects} }

func (plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p plugin) Validate(_ context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	old, had := a.Old.(*corev1.Pod)
	if !ok || !had || a.Operation != admission.Update || a.Subresource != "resize" || pod.Spec.NodeName == "" || pod.Generation == old.Generation {
		return nil
	}
	obj, err := p.objects.Get(nodes, "", pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("node %q not found", pod.Spec.NodeName)
	}
	if err != nil {
		return fmt.Errorf("failed to get node %q: %w", pod.Spec.NodeName, err)
	}
	node := obj.(*corev1.Node)
	if os := node.Labels[corev1.LabelOSStable]; os != "" && os != "linux" {
		return refuse(a, causePlatform, "pod resize is only supported on linux nodes, node %q is %q", node.Name, os)
	}
	requests, most := resource.PodRequests(pod, resource.PodResourcesOptions{}), node.Status.Allocatable
	var over []string
	if cpu := requests.Cpu(); cpu.Cmp(*most.Cpu()) > 0 {
		over = append(over, fmt.Sprintf("cpu, requested: %d, allocatable: %d", cpu.MilliValue(), most.Cpu().MilliValue()))
	}
	if memory := requests.Memory(); memory.Cmp(*most.Memory()) > 0 {
		over = append(over, fmt.Sprintf("memory, requested: %d, allocatable: %d", memory.Value(), most.Memory().Value()))
	}
	if len(over) > 0 {
		return refuse(a, causeCapacity, "node didn't have enough allocatable resources: %s", strings.Join(over, "; "))
	}
	return nil
}

func refuse(a *admission.Attributes, cause metav1.CauseType, format string, args ...any) error {
	err := apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, fmt.Errorf(format, args...))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	return err
}
