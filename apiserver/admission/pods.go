package admission

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Pod returns the pod that is written itself, not by a subresource, by one of the operations.
func (a *Attributes) Pod(operations ...Operation) (*corev1.Pod, bool) {
	if a.Subresource != "" || !slices.Contains(operations, a.Operation) {
		return nil, false
	}
	pod, ok := a.Object.(*corev1.Pod)
	return pod, ok
}

// Images calls f for every container of a pod and for every volume that is an image, with
// the path to its pull policy.
func Images(spec *corev1.PodSpec, f func(at *field.Path, image string, policy *corev1.PullPolicy)) {
	root := field.NewPath("spec")
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", spec.InitContainers}, {"containers", spec.Containers}} {
		for i := range list.containers {
			c := &list.containers[i]
			f(root.Child(list.name).Index(i).Child("imagePullPolicy"), c.Image, &c.ImagePullPolicy)
		}
	}
	for i := range spec.EphemeralContainers {
		c := &spec.EphemeralContainers[i]
		f(root.Child("ephemeralContainers").Index(i).Child("imagePullPolicy"), c.Image, &c.ImagePullPolicy)
	}
	for i := range spec.Volumes {
		if v := spec.Volumes[i].Image; v != nil {
			f(root.Child("volumes").Index(i).Child("image", "pullPolicy"), "", &v.PullPolicy)
		}
	}
}
