package kind

import (
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/registry"
)

// ReplicasOf describes the replica counts of a workload. spec is where the wanted
// count is kept, current the observed count, selector its label selector in
// string form.
type ReplicasOf[T Object] func(obj T) (spec **int32, current int32, selector string, err error)

// Scale returns the /scale subresource made from f.
func (f ReplicasOf[T]) Scale() *registry.Scale {
	return &registry.Scale{
		Get: func(object runtime.Object) (*autoscalingv1.Scale, error) {
			obj := object.(T)
			spec, current, selector, err := f(obj)
			if err != nil {
				return nil, err
			}
			scale := &autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{
					Name:              obj.GetName(),
					Namespace:         obj.GetNamespace(),
					UID:               obj.GetUID(),
					ResourceVersion:   obj.GetResourceVersion(),
					CreationTimestamp: obj.GetCreationTimestamp(),
				},
				Status: autoscalingv1.ScaleStatus{Replicas: current, Selector: selector},
			}
			if *spec != nil {
				scale.Spec.Replicas = **spec
			}
			return scale, nil
		},
		Set: func(object runtime.Object, replicas int32) error {
			spec, _, _, err := f(object.(T))
			if err != nil {
				return err
			}
			*spec = &replicas
			return nil
		},
	}
}
