package kubelet

import (
	"context"
	"crypto/md5" //nolint:gosec // an identifier, as upstream's
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/linux/inotify"
)

// staticPod is a pod from a manifest.
type staticPod struct {
	hash string // of the file's content
	pod  *corev1.Pod
}

// runStatic runs the pods whose manifests are in StaticPodPath and follows its changes.
func (k *Kubelet) runStatic(ctx context.Context) error {
	dir := k.cfg.StaticPodPath
	if dir == "" {
		k.sourceComplete(ctx)
		<-ctx.Done()
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as upstream's
		return err
	}
	watch, err := inotify.Watch(dir)
	if err != nil {
		return err
	}
	defer watch.Close() //nolint:errcheck // only read
	k.readManifests(dir)
	k.sourceComplete(ctx)
	for {
		e, err := watch.Next(ctx)
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, os.ErrClosed) {
				return nil
			}
			return err
		}
		if !strings.HasPrefix(e.Name, ".") {
			k.readManifests(dir)
		}
	}
}

// readManifests compares the directory with what runs. A file that cannot be
// read as a pod leaves the pod that it was before.
func (k *Kubelet) readManifests(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		k.log.Error("cannot read the directory of static pods", base.KeyPath, dir, base.KeyError, err)
		return
	}
	present := map[string]bool{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		present[path] = true
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			continue
		}
		if err := k.manifest(path, b); err != nil {
			k.log.Error("cannot use a manifest", base.KeyPath, path, base.KeyError, err)
		}
	}
	k.mu.Lock()
	var gone []*corev1.Pod
	for path, s := range k.statics {
		if !present[path] {
			gone = append(gone, s.pod)
			delete(k.statics, path)
		}
	}
	k.mu.Unlock()
	for _, pod := range gone {
		k.endStatic(pod)
	}
}

func (k *Kubelet) manifest(path string, content []byte) error {
	sum := md5.Sum(append([]byte(k.cfg.NodeName+"\x00"+path+"\x00"), content...)) //nolint:gosec // as above
	hash := hex.EncodeToString(sum[:])
	k.mu.Lock()
	old := k.statics[path]
	k.mu.Unlock()
	if old != nil && old.hash == hash {
		return nil
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Name == "" || len(pod.Spec.Containers) == 0 {
		return fmt.Errorf("%T is not a pod with a name and containers", obj)
	}
	k.completeStatic(pod, hash)
	k.mu.Lock()
	k.statics[path] = &staticPod{hash, pod}
	k.mu.Unlock()
	if old != nil {
		k.endStatic(old.pod)
	}
	k.podUpdated(pod)
	k.tasks.Go(func() { k.ensureMirror(k.ctx, pod) })
	return nil
}

// completeStatic gives a pod from a file what the API server gives to others.
func (k *Kubelet) completeStatic(pod *corev1.Pod, hash string) {
	pod.Name += "-" + k.cfg.NodeName
	if pod.Namespace == "" {
		pod.Namespace = corev1.NamespaceDefault
	}
	if pod.UID == "" {
		pod.UID = types.UID(hash)
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[annotationConfigSource] = "file"
	pod.Annotations[annotationConfigHash] = hash
	pod.Annotations["kubernetes.io/config.seen"] = time.Now().Format(time.RFC3339Nano)
	spec := &pod.Spec
	spec.NodeName = k.cfg.NodeName
	spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	setDefault(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	setDefault(&spec.DNSPolicy, corev1.DNSClusterFirst)
	setDefault(&spec.SchedulerName, corev1.DefaultSchedulerName)
	if spec.TerminationGracePeriodSeconds == nil {
		grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
		spec.TerminationGracePeriodSeconds = &grace
	}
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			completeContainer(&list[i], spec.HostNetwork)
		}
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
}

func completeContainer(c *corev1.Container, hostNetwork bool) {
	setDefault(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	setDefault(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = corev1.PullIfNotPresent
		if i := strings.LastIndexByte(c.Image, ':'); !strings.Contains(c.Image, "@") && (i < strings.LastIndexByte(c.Image, '/') || i < 0 || c.Image[i:] == ":latest") {
			c.ImagePullPolicy = corev1.PullAlways
		}
	}
	for i := range c.Ports {
		setDefault(&c.Ports[i].Protocol, corev1.ProtocolTCP)
		if hostNetwork && c.Ports[i].HostPort == 0 {
			c.Ports[i].HostPort = c.Ports[i].ContainerPort
		}
	}
	for name, q := range c.Resources.Limits {
		if _, ok := c.Resources.Requests[name]; !ok {
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			c.Resources.Requests[name] = q
		}
	}
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}
