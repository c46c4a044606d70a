package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	client "k8s.io/client-go/kubernetes/typed/flowcontrol/v1"
)

// Keep makes the objects that every cluster has, and brings those back to what they
// were that nobody has said to leave alone (annotation apf.kubernetes.io/autoupdate-spec;
// the mandatory ones in any case).
func Keep(ctx context.Context, c client.FlowcontrolV1Interface) error {
	var errs []error
	for _, o := range bootstrap.MandatoryPriorityLevelConfigurations {
		errs = append(errs, keep(ctx, c.PriorityLevelConfigurations(), o, true, levelSpec))
	}
	for _, o := range bootstrap.SuggestedPriorityLevelConfigurations {
		errs = append(errs, keep(ctx, c.PriorityLevelConfigurations(), o, false, levelSpec))
	}
	for _, o := range bootstrap.MandatoryFlowSchemas {
		errs = append(errs, keep(ctx, c.FlowSchemas(), o, true, schemaSpec))
	}
	for _, o := range bootstrap.SuggestedFlowSchemas {
		errs = append(errs, keep(ctx, c.FlowSchemas(), o, false, schemaSpec))
	}
	return errors.Join(errs...)
}

type objects[T any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error)
}

// levelSpec makes the spec of a that of b and reports whether it was.
func levelSpec(a, b *flowcontrolv1.PriorityLevelConfiguration) bool {
	same := equality.Semantic.DeepEqual(a.Spec, b.Spec)
	b.Spec.DeepCopyInto(&a.Spec)
	return same
}

func schemaSpec(a, b *flowcontrolv1.FlowSchema) bool {
	same := equality.Semantic.DeepEqual(a.Spec, b.Spec)
	b.Spec.DeepCopyInto(&a.Spec)
	return same
}

// keep makes one object as it is wanted. Another server may do the same meanwhile.
func keep[T interface {
	metav1.Object
	DeepCopy() T
}](ctx context.Context, c objects[T], wanted T, mandatory bool, equal func(a, b T) bool) error {
	const key = flowcontrolv1.AutoUpdateAnnotationKey
	current, err := c.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o := wanted.DeepCopy()
		o.SetAnnotations(map[string]string{key: "true"})
		_, err = c.Create(ctx, o, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	auto := mandatory
	if value, said := current.GetAnnotations()[key]; !mandatory && said {
		if auto, err = strconv.ParseBool(value); err != nil {
			auto = current.GetGeneration() == 1
		}
	} else if !mandatory {
		auto = current.GetGeneration() == 1 // nobody has changed it
	}
	o := current.DeepCopy()
	same := true
	if auto {
		same = equal(o, wanted)
	}
	if want := strconv.FormatBool(auto); o.GetAnnotations()[key] != want {
		annotations := map[string]string{}
		maps.Copy(annotations, o.GetAnnotations())
		annotations[key] = want
		o.SetAnnotations(annotations)
		same = false
	}
	if same {
		return nil
	}
	_, err = c.Update(ctx, o, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Tell writes into the status of each schema whether its level exists.
func (c *Control) Tell(ctx context.Context, schemas client.FlowSchemaInterface) error {
	list, err := c.objects.List(schemasGVR, "")
	if err != nil {
		return err
	}
	levels, err := c.objects.List(levelsGVR, "")
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, l := range levels {
		there[l.(*flowcontrolv1.PriorityLevelConfiguration).Name] = true
	}
	var errs []error
	for _, obj := range list {
		s := obj.(*flowcontrolv1.FlowSchema)
		want := dangling(s.Spec.PriorityLevelConfiguration.Name, there)
		at := -1
		for i := range s.Status.Conditions {
			if s.Status.Conditions[i].Type == want.Type {
				at = i
			}
		}
		if at >= 0 && s.Status.Conditions[at].Status == want.Status && s.Status.Conditions[at].Message == want.Message {
			continue
		}
		want.LastTransitionTime = metav1.Now()
		next := s.DeepCopy()
		if at >= 0 {
			next.Status.Conditions[at] = want
		} else {
			next.Status.Conditions = append(next.Status.Conditions, want)
		}
		if _, err := schemas.UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func dangling(level string, there map[string]bool) flowcontrolv1.FlowSchemaCondition {
	c := flowcontrolv1.FlowSchemaCondition{Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level)}
	if !there[level] {
		c.Status, c.Reason = flowcontrolv1.ConditionTrue, "NotFound"
		c.Message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", level)
	}
	return c
}
