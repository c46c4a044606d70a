package printers

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func appsTables() tables {
	return tables{
		"deployments": table(slices.Concat(columns{
			name(),
			text("Ready", "How many of the wanted pods are ready."),
			text("Up-to-date", doc(appsv1.DeploymentStatus{}, "updatedReplicas")),
			text("Available", doc(appsv1.DeploymentStatus{}, "availableReplicas")),
			age(),
		}, containerColumns(), columns{wide(text("Selector", doc(appsv1.DeploymentSpec{}, "selector")))}), deployment),
		"replicasets": table(slices.Concat(columns{
			name(),
			number("Desired", doc(appsv1.ReplicaSetSpec{}, "replicas")),
			number("Current", doc(appsv1.ReplicaSetStatus{}, "replicas")),
			number("Ready", doc(appsv1.ReplicaSetStatus{}, "readyReplicas")),
			age(),
		}, containerColumns(), columns{wide(text("Selector", doc(appsv1.ReplicaSetSpec{}, "selector")))}),
			func(s *appsv1.ReplicaSet) []any {
				cells := []any{s.Name, int64(deref(s.Spec.Replicas, 0)), int64(s.Status.Replicas), int64(s.Status.ReadyReplicas), old(s)}
				return append(withContainers(cells, &s.Spec.Template.Spec), metav1.FormatLabelSelector(s.Spec.Selector))
			}),
		"statefulsets": table(slices.Concat(columns{
			name(),
			text("Ready", "How many of the wanted pods are ready."),
			age(),
		}, containerColumns()), func(s *appsv1.StatefulSet) []any {
			cells := []any{s.Name, fmt.Sprintf("%d/%d", s.Status.ReadyReplicas, deref(s.Spec.Replicas, 0)), old(s)}
			return withContainers(cells, &s.Spec.Template.Spec)
		}),
		"daemonsets": table(slices.Concat(columns{
			name(),
			number("Desired", doc(appsv1.DaemonSetStatus{}, "desiredNumberScheduled")),
			number("Current", doc(appsv1.DaemonSetStatus{}, "currentNumberScheduled")),
			number("Ready", doc(appsv1.DaemonSetStatus{}, "numberReady")),
			number("Up-to-date", doc(appsv1.DaemonSetStatus{}, "updatedNumberScheduled")),
			number("Available", doc(appsv1.DaemonSetStatus{}, "numberAvailable")),
			text("Node Selector", doc(corev1.PodSpec{}, "nodeSelector")),
			age(),
		}, containerColumns(), columns{wide(text("Selector", doc(appsv1.DaemonSetSpec{}, "selector")))}), daemonSet),
		"controllerrevisions": table(columns{
			name(),
			text("Controller", "The object that the revision belongs to."),
			text("Revision", doc(appsv1.ControllerRevision{}, "revision")),
			age(),
		}, controllerRevision),
	}
}

func deployment(d *appsv1.Deployment) []any {
	selector := "<invalid>"
	if s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector); err == nil {
		selector = s.String()
	}
	cells := []any{
		d.Name, fmt.Sprintf("%d/%d", d.Status.ReadyReplicas, deref(d.Spec.Replicas, 0)),
		int64(d.Status.UpdatedReplicas), int64(d.Status.AvailableReplicas), old(d),
	}
	return append(withContainers(cells, &d.Spec.Template.Spec), selector)
}

func daemonSet(d *appsv1.DaemonSet) []any {
	s := &d.Status
	cells := []any{
		d.Name, int64(s.DesiredNumberScheduled), int64(s.CurrentNumberScheduled), int64(s.NumberReady),
		int64(s.UpdatedNumberScheduled), int64(s.NumberAvailable), labels.FormatLabels(d.Spec.Template.Spec.NodeSelector), old(d),
	}
	return append(withContainers(cells, &d.Spec.Template.Spec), metav1.FormatLabelSelector(d.Spec.Selector))
}

func controllerRevision(r *appsv1.ControllerRevision) []any {
	controller := none
	if ref := metav1.GetControllerOf(r); ref != nil {
		gk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind()
		controller = strings.ToLower(gk.String()) + "/" + ref.Name
	}
	return []any{r.Name, controller, r.Revision, old(r)}
}
