package webhook

import (
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/periplus/periplus/apiserver/admission"
)

// review makes the question for a hook. v1beta1 has the same form as v1.
func review(h *Hook, a *admission.Attributes, m *admission.Match) (*admissionv1.AdmissionReview, error) {
	version := ""
	for _, v := range h.Reviews {
		if v == "v1" || v == "v1beta1" {
			version = v
			break
		}
	}
	if version == "" {
		return nil, fmt.Errorf("webhook does not accept known AdmissionReview versions (v1, v1beta1)")
	}
	object, old, err := a.Encoded(m)
	if err != nil {
		return nil, err
	}
	options, err := optionsOf(a)
	if err != nil {
		return nil, err
	}
	asked := a.RequestVersion()
	requestKind := metav1.GroupVersionKind(a.KindIn(asked))
	requestResource := metav1.GroupVersionResource(asked.WithResource(a.Resource.Resource))
	out := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.GroupName + "/" + version},
		Request: &admissionv1.AdmissionRequest{
			UID: uuid.NewUUID(), Kind: metav1.GroupVersionKind(m.Kind), Resource: metav1.GroupVersionResource(m.Resource),
			SubResource: a.Subresource, RequestKind: &requestKind, RequestResource: &requestResource, RequestSubResource: a.Subresource,
			Name: a.Name, Namespace: a.Namespace, Operation: admissionv1.Operation(a.Operation),
			Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
			DryRun: &a.DryRun, Options: runtime.RawExtension{Raw: options},
		},
	}
	if a.User != nil {
		out.Request.UserInfo = authenticationv1.UserInfo{Username: a.User.GetName(), UID: a.User.GetUID(), Groups: a.User.GetGroups(), Extra: map[string]authenticationv1.ExtraValue{}}
		for k, v := range a.User.GetExtra() {
			out.Request.UserInfo.Extra[k] = v
		}
	}
	return out, nil
}

// optionsOf returns the write's options as JSON; those of patches are shown as
// those of what the patch does.
func optionsOf(a *admission.Attributes) ([]byte, error) {
	kind := ""
	options := a.Options
	if p, ok := options.(*metav1.PatchOptions); ok {
		if a.Operation == admission.Create {
			options = &metav1.CreateOptions{DryRun: p.DryRun, FieldManager: p.FieldManager, FieldValidation: p.FieldValidation}
		} else {
			options = &metav1.UpdateOptions{DryRun: p.DryRun, FieldManager: p.FieldManager, FieldValidation: p.FieldValidation}
		}
	}
	switch o := options.(type) {
	case *metav1.CreateOptions:
		kind = "CreateOptions"
	case *metav1.UpdateOptions:
		kind = "UpdateOptions"
		if a.Operation == admission.Create { // an update that makes an absent object
			kind, options = "CreateOptions", &metav1.CreateOptions{DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation}
		}
	case *metav1.DeleteOptions:
		kind = "DeleteOptions"
	default:
		return nil, nil
	}
	options = options.DeepCopyObject()
	options.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
	return json.Marshal(options)
}

// An answer is what a hook said.
type answer struct {
	Allowed  bool
	Result   *metav1.Status
	Patch    []byte
	Warnings []string
	// AuditAnnotations go into the audit event of the request, under the hook's name.
	AuditAnnotations map[string]string
}

// verify checks the form of an answer.
func verify(asked *admissionv1.AdmissionReview, got *admissionv1.AdmissionReview, mutating bool) (*answer, error) {
	r := got.Response
	if r == nil {
		return nil, fmt.Errorf("webhook response was absent")
	}
	out := &answer{Allowed: r.Allowed, Result: r.Result, Patch: r.Patch, Warnings: r.Warnings, AuditAnnotations: r.AuditAnnotations}
	if asked.APIVersion != admissionv1.SchemeGroupVersion.String() { // v1beta1 checks nothing
		if !mutating {
			out.Patch = nil
		}
		return out, nil
	}
	if r.UID != asked.Request.UID {
		return nil, fmt.Errorf("expected response.uid=%q, got %q", asked.Request.UID, r.UID)
	}
	if want, is := asked.GroupVersionKind(), got.GroupVersionKind(); want != is {
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), is.String())
	}
	switch {
	case !mutating && len(r.Patch) > 0:
		return nil, fmt.Errorf("validating webhook may not return response.patch")
	case !mutating && r.PatchType != nil:
		return nil, fmt.Errorf("validating webhook may not return response.patchType")
	case !mutating:
	case len(r.Patch) > 0 && r.PatchType == nil:
		return nil, fmt.Errorf("webhook returned response.patch but not response.patchType")
	case len(r.Patch) == 0 && r.PatchType != nil:
		return nil, fmt.Errorf("webhook returned response.patchType but not response.patch")
	case r.PatchType != nil && *r.PatchType == "":
		return nil, fmt.Errorf("webhook returned invalid response.patchType of %q", *r.PatchType)
	case r.PatchType != nil && !slices.Contains([]admissionv1.PatchType{admissionv1.PatchTypeJSONPatch}, *r.PatchType):
		return nil, fmt.Errorf("unsupported patch type %q", *r.PatchType)
	}
	return out, nil
}
