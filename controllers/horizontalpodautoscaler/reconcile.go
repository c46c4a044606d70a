package horizontalpodautoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/controllers"
)

// conflicts is how often a scale is written again that has changed meanwhile.
const conflicts = 5

// A sight is one look at one autoscaler.
type sight struct {
	*reconciler
	api     *api
	ctx     context.Context //nolint:containedctx // a sight lasts as long as one call
	key     controllers.Key
	hpa     *autoscalingv2.HorizontalPodAutoscaler       // a copy: its status is what will be written
	before  *autoscalingv2.HorizontalPodAutoscalerStatus // as it was
	history *history
	now     time.Time

	where    string          // path of the target's scale
	selector labels.Selector // of the target's pods
}

// A plan is what to do about the target.
type plan struct {
	replicas int32
	scale    bool // it has another number now
	reason   string
	metrics  []autoscalingv2.MetricStatus
	failed   error // some of the metrics
}

// reconcile brings the target's scale to where the metrics want it, as far as the
// rules allow.
func (s *sight) reconcile() error {
	ref := s.hpa.Spec.ScaleTargetRef
	scale, err := s.target()
	if err != nil {
		s.warn("FailedGetScale", err.Error())
		s.condition(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale", fmt.Sprintf("the HPA controller was unable to get the target's current scale: %v", err))
		return errors.Join(err, s.write())
	}
	s.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededGetScale", "the HPA controller was able to get the target's current scale")
	current := scale.Spec.Replicas
	s.history.begin(current, s.now)

	p, err := s.plan(scale)
	if err != nil {
		s.report(current, s.hpa.Status.DesiredReplicas, p.metrics, false)
		written := s.write()
		s.warn("FailedComputeMetricsReplicas", err.Error())
		return errors.Join(fmt.Errorf("failed to compute desired number of replicas based on listed metrics for %s/%s/%s: %w", ref.Kind, s.key.Namespace, ref.Name, err), written)
	}
	if !p.scale {
		s.report(current, current, p.metrics, false)
		return errors.Join(p.failed, s.write())
	}
	if err := s.rescale(scale, p.replicas); err != nil {
		s.warn("FailedRescale", fmt.Sprintf("New size: %d; reason: %s; error: %v", p.replicas, p.reason, err))
		s.condition(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale", fmt.Sprintf("the HPA controller was unable to update the target scale: %v", err))
		s.report(current, s.hpa.Status.DesiredReplicas, p.metrics, false)
		return errors.Join(fmt.Errorf("failed to rescale %s/%s/%s: %w", ref.Kind, s.key.Namespace, ref.Name, err), s.write())
	}
	s.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, "SucceededRescale", fmt.Sprintf("the HPA controller was able to update the target scale to %d", p.replicas))
	s.Recorder.Eventf(s.hpa, corev1.EventTypeNormal, "SuccessfulRescale", "New size: %d; reason: %s", p.replicas, p.reason)
	s.Span("scale", "HorizontalPodAutoscaler", s.hpa, s.now)
	s.history.scaled(s.hpa.Spec.Behavior, current, p.replicas, s.now)
	if current > 0 && p.replicas == 0 && s.least() == 0 && s.idle() {
		s.condition(autoscalingv2.ScaledToZero, corev1.ConditionTrue, "ScaledToZero", "the HPA controller scaled the workload to zero")
	} else {
		s.condition(autoscalingv2.ScaledToZero, corev1.ConditionFalse, "NotScaledToZero", "the HPA controller did not scale the workload to zero")
	}
	s.report(current, p.replicas, p.metrics, true)
	return errors.Join(p.failed, s.write())
}

// target finds the scale of what the autoscaler scales.
func (s *sight) target() (*autoscalingv1.Scale, error) {
	ref := s.hpa.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	s.where, err = s.api.scalePath(gv.WithKind(ref.Kind), s.key.Namespace, ref.Name)
	if err != nil {
		return nil, err
	}
	scale, err := s.api.getScale(s.ctx, s.where)
	if err != nil {
		s.api.forgetKind(gv.WithKind(ref.Kind))
		return nil, err
	}
	return scale, nil
}

// rescale writes the number of replicas.
func (s *sight) rescale(scale *autoscalingv1.Scale, replicas int32) error {
	for try := 1; ; try++ {
		scale.Spec.Replicas = replicas
		err := s.api.putScale(s.ctx, s.where, scale)
		if !apierrors.IsConflict(err) || try == conflicts {
			return err
		}
		latest, again := s.api.getScale(s.ctx, s.where)
		if again != nil {
			return err
		}
		scale = latest
	}
}

// plan decides how many replicas there should be.
func (s *sight) plan(scale *autoscalingv1.Scale) (plan, error) {
	b := bounds{least: s.least(), most: s.hpa.Spec.MaxReplicas, current: scale.Spec.Replicas}
	switch wasZero := s.scaledToZero(); {
	case b.current == 0 && !(wasZero && (b.least != 0 || s.idle())):
		s.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
		return plan{}, nil
	case b.current > b.most:
		return plan{replicas: b.most, scale: true, reason: "Current number of replicas above Spec.MaxReplicas"}, nil
	case b.current != 0 && b.current < b.least:
		return plan{replicas: b.least, scale: true, reason: "Current number of replicas below Spec.MinReplicas"}, nil
	}

	wish, name, statuses, err := s.wish(scale)
	if err != nil && wish < 0 {
		return plan{metrics: statuses}, err
	}
	p := plan{metrics: statuses, failed: err}
	switch {
	case wish > b.current:
		p.reason = name + " above target"
	case wish < b.current:
		p.reason = "All metrics below target"
	}
	p.replicas = s.normalize(wish, b)
	if b.current == 0 && p.replicas < b.least {
		p.replicas = b.least
		if p.reason == "" {
			p.reason = "Current number of replicas below Spec.MinReplicas"
		}
	}
	p.scale = p.replicas != b.current
	return p, nil
}

// normalize stabilizes and limits a wish, and says in the conditions what that did.
func (s *sight) normalize(wish int32, b bounds) int32 {
	var held, limited verdict
	if behavior := s.hpa.Spec.Behavior; behavior == nil {
		held = heldDown.of(s.history.stabilize(wish, s.Options.Autoscaling.DownscaleStabilization, s.now))
		limited = limit(held.replicas, b)
	} else {
		held = s.history.stabilizeBy(behavior, wish, b.current, s.Options.Autoscaling.DownscaleStabilization, s.now)
		limited = s.history.limitBy(behavior, held.replicas, b, s.now)
	}
	if held.replicas == wish {
		held.reason, held.message = "ReadyForNewScale", "recommended size matches current size"
	}
	s.condition(autoscalingv2.AbleToScale, corev1.ConditionTrue, held.reason, held.message)
	status := corev1.ConditionTrue
	if limited.replicas == held.replicas {
		status = corev1.ConditionFalse
	}
	s.condition(autoscalingv2.ScalingLimited, status, limited.reason, limited.message)
	return limited.replicas
}

// wish asks all metrics; the highest number counts. A negative one says that
// nothing can be done, for the reason that is returned. With metrics that cannot be
// read nothing shrinks.
func (s *sight) wish(scale *autoscalingv1.Scale) (replicas int32, name string, statuses []autoscalingv2.MetricStatus, err error) {
	if err := s.parseSelector(scale.Status.Selector); err != nil {
		return -1, "", nil, err
	}
	specs := s.hpa.Spec.Metrics
	statuses = make([]autoscalingv2.MetricStatus, len(specs))
	var first *metricError
	failed := 0
	for i := range specs {
		proposed, err := s.metric(&specs[i], scale, &statuses[i])
		if err != nil {
			s.warn(err.reason, err.cause.Error())
			failed++
			if first == nil {
				first = err
			}
			continue
		}
		if replicas == 0 || proposed.replicas > replicas {
			replicas, name = proposed.replicas, proposed.name
		}
	}
	if first != nil {
		err = fmt.Errorf("invalid metrics (%v invalid out of %v), first error is: %w", failed, len(specs), first)
	}
	if failed >= len(specs) || failed > 0 && replicas < scale.Spec.Replicas {
		if first == nil {
			return -1, "", statuses, errors.New("no metrics")
		}
		s.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, first.reason, fmt.Sprintf("the HPA was unable to compute the replica count: %v", first.cause))
		return -1, "", statuses, err
	}
	s.condition(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound", "the HPA was able to successfully calculate a replica count from "+name)
	return replicas, name, statuses, err
}

// parseSelector reads which pods belong to the target, and sees to it that they
// belong to no other autoscaler's.
func (s *sight) parseSelector(text string) error {
	if text == "" {
		s.warn("SelectorRequired", "selector is required")
		s.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector", "the HPA target's scale is missing a selector")
		return errors.New("selector is required")
	}
	selector, err := labels.Parse(text)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		s.warn("InvalidSelector", err.Error())
		s.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "InvalidSelector", err.Error())
		return err
	}
	s.selector = selector
	rivals, err := s.rivals(selector)
	if err != nil {
		return err
	}
	if len(rivals) > 0 {
		err := fmt.Errorf("pods by selector %v are controlled by more than one HPA (e.g. %v)", text, rivals)
		s.warn("AmbiguousSelector", err.Error())
		s.condition(autoscalingv2.ScalingActive, corev1.ConditionFalse, "AmbiguousSelector", err.Error())
		return err
	}
	return nil
}

// A named autoscaler, as upstream writes it.
type named struct{ name, namespace string }

// rivals returns this autoscaler and another one that selects some of the same pods, if there is one.
func (s *sight) rivals(selector labels.Selector) ([]named, error) {
	pods, err := s.pods.Pods(s.key.Namespace).List(selector)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.selectors[s.key] = selector
	for key, other := range s.selectors {
		if key == s.key || key.Namespace != s.key.Namespace {
			continue
		}
		for _, p := range pods {
			if other.Matches(labels.Set(p.Labels)) {
				out := []named{{s.key.Name, s.key.Namespace}, {key.Name, key.Namespace}}
				slices.SortFunc(out, func(a, b named) int { return strings.Compare(a.name, b.name) })
				return out, nil
			}
		}
	}
	return nil, nil
}

func (s *sight) least() int32 {
	if n := s.hpa.Spec.MinReplicas; n != nil {
		return *n
	}
	return 1
}

// idle reports that a metric can tell that there is work when no pod runs.
func (s *sight) idle() bool {
	return slices.ContainsFunc(s.hpa.Spec.Metrics, func(m autoscalingv2.MetricSpec) bool {
		return m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType
	})
}

// scaledToZero reports that it was the autoscaler that took the last replica away.
func (s *sight) scaledToZero() bool {
	return slices.ContainsFunc(s.hpa.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScaledToZero && c.Status == corev1.ConditionTrue
	})
}
