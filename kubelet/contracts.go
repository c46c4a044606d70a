package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/volume"
)

// Volumes puts the volumes of pods on the node; *volume.Host is one.
type Volumes interface {
	// Track makes known early what the pod refers to.
	Track(pod *corev1.Pod)
	// Mount makes all volumes of the pod available and returns them by name.
	Mount(ctx context.Context, pod *corev1.Pod) (map[string]volume.Mounted, error)
	// Refresh follows a change of the pod's labels and annotations.
	Refresh(ctx context.Context, pod *corev1.Pod) error
	// SubPath returns the path of a mount's subPath inside m.
	SubPath(pod types.UID, m volume.Mounted, volume, container string, index int, subPath string) (string, error)
	// Unmount undoes Mount, also after a restart. No volumes is no error.
	Unmount(ctx context.Context, pod types.UID) error
}

var _ Volumes = (*volume.Host)(nil)

// Cgroups makes the cgroups of pods.
type Cgroups interface {
	// Ensure makes or adjusts the pod's cgroup and returns its path as the runtime
	// wants it: /kubepods/burstable/pod<uid>.
	Ensure(pod *corev1.Pod) (parent string, err error)
	// Remove removes the pod's cgroup. An absent one is no error.
	Remove(pod types.UID) error
}

// Objects reads what environments and pull secrets refer to. An absent object is
// a NotFound API error. A volume.Sources is one.
type Objects interface {
	ConfigMap(namespace, name string) (*corev1.ConfigMap, error)
	Secret(namespace, name string) (*corev1.Secret, error)
}

// Statuses keeps, for a later life of the kubelet, the statuses that the API could not
// be told: a pod that completed while the API was away stays completed.
type Statuses interface {
	// Load returns what was saved for a pod, or nil.
	Load(pod types.UID) *corev1.PodStatus
	// Save keeps a status; nil: the API has been told, or has forgotten the pod.
	Save(pod types.UID, status *corev1.PodStatus)
}

type liveObjects struct{ client kubernetes.Interface }

func (l liveObjects) ConfigMap(namespace, name string) (*corev1.ConfigMap, error) {
	return l.client.CoreV1().ConfigMaps(namespace).Get(context.Background(), name, metav1.GetOptions{})
}

func (l liveObjects) Secret(namespace, name string) (*corev1.Secret, error) {
	return l.client.CoreV1().Secrets(namespace).Get(context.Background(), name, metav1.GetOptions{})
}

type noEvents struct{}

func (noEvents) Event(runtime.Object, string, string, string)          {}
func (noEvents) Eventf(runtime.Object, string, string, string, ...any) {}
func (noEvents) AnnotatedEventf(runtime.Object, map[string]string, string, string, string, ...any) {
}
