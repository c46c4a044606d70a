package statefulset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writeStatus counts the pods and writes the status if it has changed.
func (r *reconciler) writeStatus(ctx context.Context, set *appsv1.StatefulSet, p *pass) error {
	status := p.status()
	if apiequality.Semantic.DeepEqual(&set.Status, &status) {
		return nil
	}
	out := set.DeepCopy()
	out.Status = status
	_, err := r.Client.AppsV1().StatefulSets(set.Namespace).UpdateStatus(ctx, out, metav1.UpdateOptions{})
	return err
}

func (p *pass) status() appsv1.StatefulSetStatus {
	current, update := p.versions.current.Name, p.versions.update.Name
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: p.set.Generation, CurrentRevision: current, UpdateRevision: update,
		CollisionCount: &p.versions.collisions, Conditions: p.set.Status.Conditions,
	}
	for _, pod := range p.pods {
		if pod.UID == "" {
			continue
		}
		s.Replicas++
		if ready(pod) {
			s.ReadyReplicas++
			if p.available(pod) {
				s.AvailableReplicas++
			}
		}
		if pod.DeletionTimestamp != nil {
			continue
		}
		revision := pod.Labels[appsv1.StatefulSetRevisionLabel]
		if revision == current {
			s.CurrentReplicas++
		}
		if revision == update {
			s.UpdatedReplicas++
		}
	}
	// A rolling update that has reached every pod is the current revision.
	if want := int32(len(p.replicas)); p.set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		s.UpdatedReplicas == want && s.ReadyReplicas == want && s.Replicas == want {
		s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, update
	}
	return s
}
