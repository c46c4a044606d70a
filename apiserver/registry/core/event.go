package core

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/validation"
)

func events() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("events"),
		Kind:       "Event",
		Singular:   "event",
		ShortNames: []string{"ev"},
		Namespaced: true,
		Dependents: registry.NoDependents,
		New:        kind.Make[corev1.Event],
		NewList:    kind.Make[corev1.EventList],
		Strategy: registry.Funcs[*corev1.Event]{
			Name:           validation.AnyName,
			ValidateCreate: validateEvent,
			ValidateChange: validateEventUpdate,
			Fixed:          registry.Traits{CreateOnUpdate: true},
		},
		SelectableFields: eventSelectable,
		Fields:           eventFields,
		Also:             []registry.Served{servedEventsV1()},
	}
}

// eventSelectable has the names of both served versions.
var eventSelectable = []string{
	"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
	"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
	"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
	"regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
	"reason", "reportingComponent", "reportingController", "source", "type",
}

func eventFields(obj runtime.Object) fields.Set {
	event := obj.(*corev1.Event)
	source := event.Source.Component
	if source == "" {
		source = event.ReportingController
	}
	set := fields.Set{
		"reason":              event.Reason,
		"reportingComponent":  event.ReportingController,
		"reportingController": event.ReportingController,
		"source":              source,
		"type":                event.Type,
	}
	for _, prefix := range []string{"involvedObject.", "regarding."} {
		set[prefix+"kind"] = event.InvolvedObject.Kind
		set[prefix+"namespace"] = event.InvolvedObject.Namespace
		set[prefix+"name"] = event.InvolvedObject.Name
		set[prefix+"uid"] = string(event.InvolvedObject.UID)
		set[prefix+"apiVersion"] = event.InvolvedObject.APIVersion
		set[prefix+"resourceVersion"] = event.InvolvedObject.ResourceVersion
		set[prefix+"fieldPath"] = event.InvolvedObject.FieldPath
	}
	return set
}

// strict reports whether the request came through events.k8s.io/v1, whose rules
// are stricter than those of the core group.
func strict(ctx context.Context) bool {
	s := request.From(ctx)
	return s != nil && s.Info.Group == eventsv1.GroupName
}

func validateEvent(ctx context.Context, event *corev1.Event) field.ErrorList {
	errs := legacyEvent(event, strict(ctx))
	if !strict(ctx) {
		return errs
	}
	errs = append(errs, eventSeries(event)...)
	if event.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if event.Type != corev1.EventTypeNormal && event.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", event.Type)))
	}
	for _, old := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !event.FirstTimestamp.IsZero()}, {"lastTimestamp", !event.LastTimestamp.IsZero()},
		{"count", event.Count != 0}, {"source", event.Source.Component != "" || event.Source.Host != ""},
	} {
		if old.set {
			errs = append(errs, field.Invalid(field.NewPath(old.name), "", "needs to be unset"))
		}
	}
	return errs
}

func validateEventUpdate(ctx context.Context, event, old *corev1.Event) field.ErrorList {
	errs := legacyEvent(event, strict(ctx))
	if !strict(ctx) {
		return errs
	}
	if !validation.Equal(event.Series, old.Series) {
		errs = append(errs, eventSeries(event)...)
	}
	for _, f := range []struct {
		name       string
		value, old any
	}{
		{"involvedObject", event.InvolvedObject, old.InvolvedObject}, {"reason", event.Reason, old.Reason},
		{"message", event.Message, old.Message}, {"source", event.Source, old.Source},
		{"firstTimestamp", event.FirstTimestamp, old.FirstTimestamp}, {"lastTimestamp", event.LastTimestamp, old.LastTimestamp},
		{"count", event.Count, old.Count}, {"type", event.Type, old.Type},
		{"eventTime", event.EventTime.Truncate(time.Microsecond).UnixMicro(), old.EventTime.Truncate(time.Microsecond).UnixMicro()},
		{"action", event.Action, old.Action}, {"related", event.Related, old.Related},
		{"reportingController", event.ReportingController, old.ReportingController},
		{"reportingInstance", event.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, validation.Immutable(f.value, f.old, field.NewPath(f.name))...)
	}
	return errs
}

func eventSeries(event *corev1.Event) field.ErrorList {
	var errs field.ErrorList
	if s := event.Series; s != nil {
		if s.Count < 2 {
			errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
		}
		if s.LastObservedTime.IsZero() {
			errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
		}
	}
	return errs
}

// legacyEvent checks what holds for events of any version: an event is in the
// namespace of what it is about, and one with an eventTime names its reporter.
func legacyEvent(event *corev1.Event, newer bool) field.ErrorList {
	var errs field.ErrorList
	about, namespace := event.InvolvedObject.Namespace, event.Namespace
	mismatch := func() {
		errs = append(errs, field.Invalid(field.NewPath("involvedObject", "namespace"), about, "does not match event.namespace"))
	}
	if event.EventTime.IsZero() {
		if about == "" && namespace != metav1.NamespaceNone && namespace != metav1.NamespaceDefault || about != "" && about != namespace {
			mismatch()
		}
		return errs
	}
	if about == "" && namespace != metav1.NamespaceDefault && namespace != metav1.NamespaceSystem {
		mismatch()
	}
	controller := field.NewPath("reportingComponent")
	if newer {
		controller = field.NewPath("reportingController")
	}
	if event.ReportingController == "" {
		errs = append(errs, field.Required(controller, ""))
	}
	errs = append(errs, validation.QualifiedName(event.ReportingController, controller)...)
	for _, f := range []struct {
		name, value string
		most        int
		needed      bool
	}{
		{"reportingInstance", event.ReportingInstance, 128, true}, {"action", event.Action, 128, true},
		{"reason", event.Reason, 128, true}, {"message", event.Message, 1024, false},
	} {
		if f.needed && f.value == "" {
			errs = append(errs, field.Required(field.NewPath(f.name), ""))
		}
		if len(f.value) > f.most {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", fmt.Sprintf("can have at most %v characters", f.most)))
		}
	}
	return errs
}
