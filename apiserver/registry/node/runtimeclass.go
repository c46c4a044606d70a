package node

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/validation"
)

func runtimeClasses() *registry.Resource {
	s := registry.Funcs[*nodev1.RuntimeClass]{}
	s.ValidateCreate = func(_ context.Context, class *nodev1.RuntimeClass) field.ErrorList {
		return runtimeClass(class, validation.ShortName)
	}
	s.ValidateChange = func(_ context.Context, class, old *nodev1.RuntimeClass) field.ErrorList {
		return append(runtimeClass(class, validation.DNSLabel), validation.Frozen(class.Handler, old.Handler, field.NewPath("handler"))...)
	}
	s.WarningsFunc = func(_ context.Context, class, _ *nodev1.RuntimeClass) (list []string) {
		if class.Scheduling == nil {
			return nil
		}
		for label := range class.Scheduling.NodeSelector {
			if text := validation.NodeLabelWarning(label); text != "" {
				list = append(list, "scheduling.nodeSelector: "+text)
			}
		}
		return list
	}
	s.Fixed.NoUnconditionalUpdate = true
	return &registry.Resource{
		GVR:      version.WithResource("runtimeclasses"),
		Kind:     "RuntimeClass",
		Singular: "runtimeclass",
		New:      kind.Make[nodev1.RuntimeClass],
		NewList:  kind.Make[nodev1.RuntimeClassList],
		Strategy: s,
	}
}

// runtimeClass checks a class, and the name of its handler by a rule: upstream says
// the same in other words on create and on update.
func runtimeClass(class *nodev1.RuntimeClass, name func(string, *field.Path) field.ErrorList) (errs field.ErrorList) {
	if at := field.NewPath("handler"); class.Handler == "" {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, name(class.Handler, at)...)
	}
	if class.Overhead != nil {
		errs = append(errs, validation.Overhead(class.Overhead.PodFixed, field.NewPath("overhead"))...)
	}
	if class.Scheduling == nil {
		return errs
	}
	at := field.NewPath("scheduling")
	errs = append(errs, metav1validation.ValidateLabels(class.Scheduling.NodeSelector, at.Child("nodeSelector"))...)
	list, p := class.Scheduling.Tolerations, at.Child("tolerations")
	errs = append(errs, validation.Tolerations(list, p)...)
	for i, t := range list {
		if slices.ContainsFunc(list[:i], func(o corev1.Toleration) bool {
			return o.Key == t.Key && o.Operator == t.Operator && o.Value == t.Value && o.Effect == t.Effect
		}) {
			errs = append(errs, field.Duplicate(p.Index(i), t))
		}
	}
	return errs
}
