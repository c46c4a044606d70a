package subresource

import (
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
)

const (
	defaultLifetime = time.Hour
	minLifetime     = 10 * time.Minute
	maxLifetime     = 1 << 32 * time.Second
)

// token issues bound service account tokens (TokenRequest).
type token struct{ Config }

func (t token) serve(w http.ResponseWriter, r *http.Request, info *request.Info, accounts *rest.Objects) error {
	if info.Verb != "create" {
		return apierrors.NewMethodNotSupported(accounts.Resource.GVR.GroupResource(), info.Verb)
	}
	kind := authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
	obj, err := t.Server.Decode(w, r, kind, &authenticationv1.TokenRequest{})
	if err != nil {
		return err
	}
	req, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return apierrors.NewBadRequest(fmt.Sprintf("the body is a %T, want a TokenRequest", obj))
	}
	if req.Spec.ExpirationSeconds == nil {
		seconds := int64(defaultLifetime / time.Second)
		req.Spec.ExpirationSeconds = &seconds
	}
	options := &metav1.CreateOptions{DryRun: r.URL.Query()["dryRun"]}
	if err := accounts.AdmitSubresource(r.Context(), admission.Create, info, kind, req, options, len(options.DryRun) > 0, func() error {
		if len(req.Spec.Audiences) == 0 {
			req.Spec.Audiences = t.Tokens.Audiences()
		}
		if errs := checkToken(req); len(errs) > 0 {
			return apierrors.NewInvalid(kind.GroupKind(), info.Name, errs)
		}
		return nil
	}); err != nil {
		return err
	}
	current, err := accounts.Get(r.Context(), info.Namespace, info.Name)
	if err != nil {
		return err
	}
	sa := current.Obj.(*corev1.ServiceAccount)
	bound := serviceaccount.Bound{ServiceAccount: sa, Audiences: req.Spec.Audiences, Lifetime: time.Duration(*req.Spec.ExpirationSeconds) * time.Second}
	if t.MaxTokenLifetime > 0 {
		bound.Lifetime = min(bound.Lifetime, t.MaxTokenLifetime)
	}
	if ref := req.Spec.BoundObjectRef; ref != nil {
		if err := t.bind(&bound, ref, info.Namespace, sa.Name); err != nil {
			return err
		}
	}
	signed, expires, err := t.Tokens.Issue(bound)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	req.Name, req.Namespace, req.CreationTimestamp = sa.Name, sa.Namespace, metav1.Now()
	req.Status = authenticationv1.TokenRequestStatus{Token: signed, ExpirationTimestamp: metav1.NewTime(expires)}
	req.GetObjectKind().SetGroupVersionKind(kind)
	t.Server.Codecs().WriteObject(w, r, http.StatusCreated, req)
	return nil
}

func checkToken(req *authenticationv1.TokenRequest) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec", "expirationSeconds")
	switch lifetime := time.Duration(*req.Spec.ExpirationSeconds) * time.Second; {
	case lifetime < minLifetime:
		errs = append(errs, field.Invalid(path, *req.Spec.ExpirationSeconds, "may not specify a duration less than 10 minutes"))
	case lifetime > maxLifetime:
		errs = append(errs, field.Invalid(path, *req.Spec.ExpirationSeconds, "may not specify a duration larger than 2^32 seconds"))
	}
	return errs
}

// bind ties the token to a pod, node or secret, which must exist.
func (t token) bind(b *serviceaccount.Bound, ref *authenticationv1.BoundObjectReference, namespace, account string) error {
	get := func(resource, namespace string) (*serviceaccount.Ref, runtime.Object, error) {
		obj, err := t.Server.Get(schema.GroupVersionResource{Version: "v1", Resource: resource}, namespace, ref.Name)
		if err != nil {
			return nil, nil, err
		}
		uid := obj.(interface{ GetUID() types.UID }).GetUID()
		if ref.UID != "" && ref.UID != uid {
			return nil, nil, apierrors.NewConflict(schema.GroupResource{Resource: resource}, ref.Name,
				fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
		}
		return &serviceaccount.Ref{Name: ref.Name, UID: uid}, obj, nil
	}
	switch gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind); gvk {
	case corev1.SchemeGroupVersion.WithKind("Pod"):
		r, obj, err := get("pods", namespace)
		if err != nil {
			return err
		}
		pod := obj.(*corev1.Pod)
		if pod.Spec.ServiceAccountName != account {
			return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name", account))
		}
		b.Pod = r
		if pod.Spec.NodeName != "" {
			b.Node = &serviceaccount.Ref{Name: pod.Spec.NodeName}
			if node, err := t.Server.Get(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "", pod.Spec.NodeName); err == nil {
				b.Node.UID = node.(*corev1.Node).UID
			}
		}
	case corev1.SchemeGroupVersion.WithKind("Node"):
		r, _, err := get("nodes", "")
		if err != nil {
			return err
		}
		b.Node = r
	case corev1.SchemeGroupVersion.WithKind("Secret"):
		r, _, err := get("secrets", namespace)
		if err != nil {
			return err
		}
		b.Secret = r
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gvk))
	}
	return nil
}
