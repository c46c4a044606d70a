package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/image"
)

// imageVolumes makes the images present that are volumes of a container.
func (e *execution) imageVolumes(ctx context.Context, c *corev1.Container) *image.Error {
	for i := range c.VolumeMounts {
		v := e.imageVolume(c.VolumeMounts[i].Name)
		if v == nil || v.Reference == "" {
			continue
		}
		got, err := e.w.k.puller.Ensure(ctx, image.Request{
			Pod: e.pod, Container: &corev1.Container{Name: c.Name, Image: v.Reference, ImagePullPolicy: v.PullPolicy}, Sandbox: e.config,
			Event: func(kind, reason, message string) { e.w.k.cfg.Events.Event(e.pod, kind, reason, message) },
		})
		if err != nil {
			return err
		}
		if e.images == nil {
			e.images = map[string]*runtimeapi.ImageSpec{}
		}
		e.images[c.VolumeMounts[i].Name] = &runtimeapi.ImageSpec{Image: got.Ref, UserSpecifiedImage: v.Reference, Annotations: e.pod.Annotations}
		if got.Pulled {
			e.w.k.node.Changed()
		}
	}
	return nil
}

// imageVolume is the source of a volume that is an image, else nil.
func (e *execution) imageVolume(name string) *corev1.ImageVolumeSource {
	for i := range e.pod.Spec.Volumes {
		if e.pod.Spec.Volumes[i].Name == name {
			return e.pod.Spec.Volumes[i].Image
		}
	}
	return nil
}
