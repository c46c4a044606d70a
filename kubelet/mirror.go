package kubelet

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/base"
)

// A static pod is shown in the API by a mirror: a pod object that nobody runs,
// with the annotation kubernetes.io/config.mirror. Its status is the static pod's.

func objectKey(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// staticOf returns the static pod that a mirror shows, or nil.
func (k *Kubelet) staticOf(key string) *corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.statics {
		if objectKey(s.pod) == key {
			return s.pod
		}
	}
	return nil
}

func (k *Kubelet) workerOf(pod *corev1.Pod) *worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.workers[pod.UID]
}

func (k *Kubelet) mirrorUpdated(mirror *corev1.Pod) {
	k.mu.Lock()
	k.mirrors[objectKey(mirror)] = mirror
	complete := k.listed == 2
	k.mu.Unlock()
	pod := k.staticOf(objectKey(mirror))
	switch {
	case pod == nil && complete,
		pod != nil && mirror.Annotations[annotationConfigMirror] != pod.Annotations[annotationConfigHash],
		mirror.DeletionTimestamp != nil:
		k.tasks.Go(func() { k.dropMirror(mirror) })
	case pod != nil:
		if w := k.workerOf(pod); w != nil {
			w.status.observed(mirror)
		}
	}
}

func (k *Kubelet) mirrorDeleted(mirror *corev1.Pod) {
	k.mu.Lock()
	delete(k.mirrors, objectKey(mirror))
	k.mu.Unlock()
	pod := k.staticOf(objectKey(mirror))
	if pod == nil {
		return
	}
	if w := k.workerOf(pod); w != nil {
		w.status.lost()
	}
	k.tasks.Go(func() { k.ensureMirror(k.ctx, pod) })
}

// dropMirror deletes a mirror whose pod is gone or another one by now.
func (k *Kubelet) dropMirror(mirror *corev1.Pod) {
	if err := k.deletePod(k.ctx, mirror); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		k.log.Warn("cannot delete a mirror pod", base.KeyPod, objectKey(mirror), base.KeyError, err)
	}
}

// ensureMirror creates the static pod's mirror if there is none.
func (k *Kubelet) ensureMirror(ctx context.Context, pod *corev1.Pod) {
	mirror := pod.DeepCopy()
	mirror.UID = ""
	mirror.Annotations[annotationConfigMirror] = pod.Annotations[annotationConfigHash]
	select { // the mirror is owned by the node
	case <-k.node.Registered():
	case <-ctx.Done():
		return
	}
	if node := k.Node(); node != nil {
		controller := true
		mirror.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &controller}}
	}
	delay := 200 * time.Millisecond
	for ctx.Err() == nil {
		if k.staticOf(objectKey(pod)) != pod {
			return // the manifest has changed
		}
		created, err := k.cfg.Client.CoreV1().Pods(pod.Namespace).Create(ctx, mirror, metav1.CreateOptions{})
		switch {
		case err == nil:
			if w := k.workerOf(pod); w != nil {
				w.status.observed(created)
			}
			return
		case apierrors.IsAlreadyExists(err):
			return // the informer shows it, and whether it is the right one
		}
		k.log.Warn("cannot create a mirror pod", base.KeyPod, objectKey(pod), base.KeyError, err)
		select {
		case <-ctx.Done():
		case <-time.After(delay):
			delay = min(2*delay, 10*time.Second)
		}
	}
}

// endStatic ends a static pod whose manifest is gone or was replaced.
func (k *Kubelet) endStatic(pod *corev1.Pod) {
	if w := k.workerOf(pod); w != nil {
		w.remove(pod)
	}
	k.mu.Lock()
	mirror := k.mirrors[objectKey(pod)]
	k.mu.Unlock()
	if mirror != nil {
		k.tasks.Go(func() { k.dropMirror(mirror) })
	}
}
