package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/client/conditions"
)

// Disrupt notes in the condition DisruptionTarget why the control plane takes a
// pod away, so that Jobs do not count it as the pod's own failure. fail also moves
// it to phase Failed. A pod that is gone is no error.
func Disrupt(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, reason, message string, fail bool) error {
	c := conditions.Pod(&pod.Status, corev1.DisruptionTarget)
	fail = fail && !PodFinished(pod)
	if c != nil && c.Status == corev1.ConditionTrue && c.Reason == reason && !fail {
		return nil
	}
	status := map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastTransitionTime: metav1.Now(), ObservedGeneration: pod.Generation,
	}}}
	if fail {
		status["phase"] = corev1.PodFailed
	}
	patch := mustJSON(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
