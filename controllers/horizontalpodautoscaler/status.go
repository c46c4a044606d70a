package horizontalpodautoscaler

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *sight) warn(reason, message string) {
	s.Recorder.Event(s.hpa, corev1.EventTypeWarning, reason, message)
}

// condition sets a condition of the autoscaler.
func (s *sight) condition(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string) {
	list := &s.hpa.Status.Conditions
	var c *autoscalingv2.HorizontalPodAutoscalerCondition
	for i := range *list {
		if (*list)[i].Type == kind {
			c = &(*list)[i]
		}
	}
	if c == nil {
		*list = append(*list, autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind})
		c = &(*list)[len(*list)-1]
	}
	if c.Status != status {
		c.LastTransitionTime = metav1.NewTime(s.now)
	}
	c.Status, c.Reason, c.Message = status, reason, message
}

// report makes the status, but for the conditions.
func (s *sight) report(current, desired int32, metrics []autoscalingv2.MetricStatus, scaled bool) {
	st := &s.hpa.Status
	generation := s.hpa.Generation
	st.ObservedGeneration = &generation
	st.CurrentReplicas, st.DesiredReplicas, st.CurrentMetrics = current, desired, metrics
	if scaled {
		now := metav1.NewTime(s.now)
		st.LastScaleTime = &now
	}
}

// write stores the status if it has changed.
func (s *sight) write() error {
	if equality.Semantic.DeepEqual(s.before, &s.hpa.Status) {
		return nil
	}
	_, err := s.Client.AutoscalingV2().HorizontalPodAutoscalers(s.key.Namespace).UpdateStatus(s.ctx, s.hpa, metav1.UpdateOptions{})
	if err != nil {
		s.warn("FailedUpdateStatus", err.Error())
		return fmt.Errorf("failed to update status for %s: %w", s.key.Name, err)
	}
	return nil
}
