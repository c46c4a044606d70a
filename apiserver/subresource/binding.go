package subresource

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/journey"
)

// binding assigns a pod to a node, once.
type binding struct{ Config }

func (b binding) serve(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects) error {
	if info.Verb != "create" {
		return apierrors.NewMethodNotSupported(pods.Resource.GVR.GroupResource(), info.Verb)
	}
	kind := corev1.SchemeGroupVersion.WithKind("Binding")
	obj, err := b.Server.Decode(w, r, kind, &corev1.Binding{})
	if err != nil {
		return err
	}
	bind, ok := obj.(*corev1.Binding)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %T, want a Binding", obj))
	}
	dry := r.URL.Query().Get("dryRun") == metav1.DryRunAll
	if err := b.bind(r.Context(), info, bind, pods, dry); err != nil {
		return err
	}
	b.Server.Codecs().WriteObject(w, r, http.StatusCreated, success())
	return nil
}

// Bind answers POST to bindings: the object names the pod.
func Bind(c Config) func(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	return func(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
		bind := obj.(*corev1.Binding)
		pods := c.Server.Objects(corev1.SchemeGroupVersion.WithResource("pods"))
		info := &request.Info{
			IsResource: true, Verb: "create", Version: "v1", Resource: "pods", Subresource: "binding", Namespace: bind.Namespace, Name: bind.Name,
		}
		if err := (binding{c}).bind(ctx, info, bind, pods, false); err != nil {
			return nil, err
		}
		return success(), nil
	}
}

func (b binding) bind(ctx context.Context, info *request.Info, bind *corev1.Binding, pods *rest.Objects, dry bool) error {
	start, kind := time.Now(), corev1.SchemeGroupVersion.WithKind("Binding")
	if errs := checkTarget(bind); len(errs) > 0 {
		return apierrors.NewInvalid(kind.GroupKind(), info.Name, errs)
	}
	var preconditions *metav1.Preconditions
	if bind.UID != "" {
		preconditions = &metav1.Preconditions{UID: &bind.UID}
	}
	if err := pods.AdmitSubresource(ctx, admission.Create, info, kind, bind, &metav1.CreateOptions{}, dry); err != nil {
		return err
	}
	pod, _, err := pods.Update(ctx, info.Namespace, info.Name, func(current runtime.Object) (runtime.Object, error) {
		return assign(current.(*corev1.Pod), bind, pods)
	}, rest.Write{Strategy: registry.Funcs[*corev1.Pod]{}, Subresource: "binding", Internal: true, Preconditions: preconditions, DryRun: dry})
	if err != nil {
		return err
	}
	b.Journey.Record(journey.Step("apiserver", "bound to "+bind.Target.Name, "Pod", pod.Meta, start))
	return nil
}

func checkTarget(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	target := field.NewPath("target")
	if b.Target.Kind != "" && b.Target.Kind != "Node" {
		errs = append(errs, field.NotSupported(target.Child("kind"), b.Target.Kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(target.Child("name"), ""))
	}
	return errs
}

// assign returns the pod bound to the target.
func assign(pod *corev1.Pod, b *corev1.Binding, pods *rest.Objects) (*corev1.Pod, error) {
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(pods.Resource.GVR.GroupResource(), pod.Name, fmt.Errorf(format, args...))
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return nil, refuse("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return nil, refuse("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return nil, refuse("pod %s has non-empty .spec.schedulingGates", pod.Name)
	}
	out := pod.DeepCopy()
	out.ResourceVersion = ""
	out.Spec.NodeName = b.Target.Name
	out.Status.NominatedNodeName = "" // it has served its purpose
	if len(b.Annotations) > 0 && out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, b.Annotations)
	if len(b.Labels) > 0 && out.Labels == nil {
		out.Labels = map[string]string{}
	}
	maps.Copy(out.Labels, b.Labels) // zone and region of the node (KEP-4742)
	now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now, ObservedGeneration: out.Generation}
	for i := range out.Status.Conditions {
		if out.Status.Conditions[i].Type == corev1.PodScheduled {
			out.Status.Conditions[i] = scheduled
			return out, nil
		}
	}
	out.Status.Conditions = append(out.Status.Conditions, scheduled)
	return out, nil
}
