package apps

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var deploymentHalves = kind.Split(func(obj *appsv1.Deployment) (*appsv1.DeploymentSpec, *appsv1.DeploymentStatus) {
	return &obj.Spec, &obj.Status
})

func deployments() *registry.Resource {
	s := deploymentHalves.Main()
	return &registry.Resource{
		GVR:        version.WithResource("deployments"),
		Kind:       "Deployment",
		Singular:   "deployment",
		ShortNames: []string{"deploy"},
		Categories: []string{"all"},
		Namespaced: true,
		New:        kind.Make[appsv1.Deployment],
		NewList:    kind.Make[appsv1.DeploymentList],
		Strategy:   s,
		Status:     deploymentHalves.Status(),
		Scale: kind.ReplicasOf[*appsv1.Deployment](func(obj *appsv1.Deployment) (**int32, int32, string, error) {
			selector, err := metav1.LabelSelectorAsSelector(obj.Spec.Selector)
			if err != nil {
				return nil, 0, "", err
			}
			return &obj.Spec.Replicas, obj.Status.Replicas, selector.String(), nil
		}).Scale(),
	}
}
