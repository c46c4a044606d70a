package subresource

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/client/conditions"
)

var budgets = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")

// maxDisrupted bounds the pods that a budget remembers as being evicted.
const maxDisrupted = 2000

// eviction deletes a pod if its disruption budget allows.
type eviction struct{ Config }

func (e eviction) serve(w http.ResponseWriter, r *http.Request, info *request.Info, pods *rest.Objects) error {
	if info.Verb != "create" {
		return apierrors.NewMethodNotSupported(pods.Resource.GVR.GroupResource(), info.Verb)
	}
	obj, err := e.Server.Decode(w, r, policyv1.SchemeGroupVersion.WithKind("Eviction"), &policyv1.Eviction{})
	if err != nil {
		return err
	}
	evict, ok := obj.(*policyv1.Eviction)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %T, want an Eviction", obj))
	}
	if evict.Name != "" && evict.Name != info.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	options := evict.DeleteOptions
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if err := pods.AdmitSubresource(r.Context(), admission.Create, info, policyv1.SchemeGroupVersion.WithKind("Eviction"), evict,
		&metav1.CreateOptions{}, len(options.DryRun) > 0); err != nil {
		return err
	}
	current, err := pods.Get(r.Context(), info.Namespace, info.Name)
	if err != nil {
		return err
	}
	pod := current.Obj.(*corev1.Pod)
	if !ignoresBudget(pod) {
		if err := e.spend(r, pod); err != nil {
			return err
		}
	}
	if err := note(r, pods, pod, options); err != nil {
		return err
	}
	if _, _, err := pods.Delete(r.Context(), info.Namespace, info.Name, options); err != nil {
		return err
	}
	e.Server.Codecs().WriteObject(w, r, http.StatusCreated, success())
	return nil
}

// note says in the pod's conditions why it is about to go.
func note(r *http.Request, pods *rest.Objects, pod *corev1.Pod, options *metav1.DeleteOptions) error {
	if len(options.DryRun) > 0 || pod.DeletionTimestamp != nil {
		return nil
	}
	_, _, err := pods.Update(r.Context(), pod.Namespace, pod.Name, func(current runtime.Object) (runtime.Object, error) {
		out := current.(*corev1.Pod).DeepCopy()
		out.ResourceVersion = ""
		condition := corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			LastTransitionTime: metav1.NewTime(time.Now().UTC().Truncate(time.Second)), ObservedGeneration: out.Generation,
		}
		i := slices.IndexFunc(out.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
		if i < 0 {
			out.Status.Conditions = append(out.Status.Conditions, condition)
		} else if out.Status.Conditions[i].Reason != condition.Reason || out.Status.Conditions[i].Status != condition.Status {
			out.Status.Conditions[i] = condition
		}
		return out, nil
	}, rest.Write{
		Strategy: registry.Funcs[*corev1.Pod]{}, Subresource: "status", Internal: true, Preconditions: options.Preconditions,
	})
	return err
}

// ignoresBudget reports whether evicting the pod disrupts nothing.
func ignoresBudget(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodPending
}

// spend takes one disruption from the pod's budget, or refuses.
func (e eviction) spend(r *http.Request, pod *corev1.Pod) error {
	list, err := e.Server.List(budgets, pod.Namespace)
	if err != nil {
		return err
	}
	var matching []*policyv1.PodDisruptionBudget
	for _, obj := range list {
		b := obj.(*policyv1.PodDisruptionBudget)
		if s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && s.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, b)
		}
	}
	switch len(matching) {
	case 0:
		return nil
	case 1:
	default:
		return apierrors.NewInternalError(errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."))
	}
	if !conditions.PodReady(pod) && mayEvictUnready(matching[0]) {
		return nil
	}
	objects := e.Server.Objects(budgets)
	_, _, err = objects.Update(r.Context(), pod.Namespace, matching[0].Name, func(current runtime.Object) (runtime.Object, error) {
		return disrupt(current.(*policyv1.PodDisruptionBudget), pod)
	}, rest.Write{Strategy: registry.Funcs[*policyv1.PodDisruptionBudget]{}, Subresource: "status", Internal: true})
	return err
}

func mayEvictUnready(b *policyv1.PodDisruptionBudget) bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}

func disrupt(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	tooMany := func(cause string) error {
		err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
		return err
	}
	switch {
	case b.Status.ObservedGeneration < b.Generation:
		return nil, tooMany(fmt.Sprintf("The disruption budget %s is still being processed by the server.", b.Name))
	case b.Status.DisruptionsAllowed < 0:
		return nil, apierrors.NewForbidden(budgets.GroupResource(), b.Name, errors.New("pdb disruptions allowed is negative"))
	case len(b.Status.DisruptedPods) > maxDisrupted:
		return nil, apierrors.NewForbidden(budgets.GroupResource(), b.Name, errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case b.Status.DisruptionsAllowed == 0:
		return nil, tooMany(fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy))
	}
	out := b.DeepCopy()
	out.ResourceVersion = ""
	out.Status.DisruptionsAllowed--
	if out.Status.DisruptedPods == nil {
		out.Status.DisruptedPods = map[string]metav1.Time{}
	}
	out.Status.DisruptedPods[pod.Name] = metav1.Now()
	return out, nil
}
