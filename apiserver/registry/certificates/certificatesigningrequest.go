package certificates

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/validation"
)

type csr = certificatesv1.CertificateSigningRequest

func certificateSigningRequests() *registry.Resource {
	return &registry.Resource{
		GVR:        version.WithResource("certificatesigningrequests"),
		Kind:       "CertificateSigningRequest",
		Singular:   "certificatesigningrequest",
		ShortNames: []string{"csr"},
		New:        kind.Make[certificatesv1.CertificateSigningRequest],
		NewList:    kind.Make[certificatesv1.CertificateSigningRequestList],
		Strategy: registry.Funcs[*csr]{
			PrepareCreate: requestedBy,
			PrepareUpdate: func(_ context.Context, r, old *csr) {
				r.Spec, r.Status = old.Spec, old.Status // only metadata may change here
			},
			ValidateCreate: func(_ context.Context, r *csr) field.ErrorList { return validateRequest(r) },
			Name:           validation.AnyName,
		},
		Status: registry.Funcs[*csr]{
			PrepareUpdate: func(_ context.Context, r, old *csr) {
				r.Spec = old.Spec
				keepConditions(r, old, certificatesv1.CertificateApproved)
				keepConditions(r, old, certificatesv1.CertificateDenied)
				stampConditions(r, old)
			},
			ValidateChange: func(_ context.Context, r, old *csr) field.ErrorList { return validateStatus(r, old, true) },
			Name:           validation.AnyName,
		},
		SelectableFields: []string{"spec.signerName"},
		Fields:           func(obj runtime.Object) fields.Set { return fields.Set{"spec.signerName": obj.(*csr).Spec.SignerName} },
	}
}

// Approval returns the strategy of certificatesigningrequests/approval: only the
// conditions are taken over.
func Approval() registry.Strategy {
	return registry.Funcs[*csr]{
		PrepareUpdate: func(_ context.Context, r, old *csr) {
			stampConditions(r, old)
			conditions := r.Status.Conditions
			r.Spec, r.Status = old.Spec, old.Status
			r.Status.Conditions = conditions
		},
		ValidateChange: func(_ context.Context, r, old *csr) field.ErrorList { return validateStatus(r, old, false) },
		Name:           validation.AnyName,
	}
}

// requestedBy writes the caller into the request: what clients say of
// themselves does not count.
func requestedBy(ctx context.Context, r *csr) {
	r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = "", "", nil, nil
	if s := request.From(ctx); s != nil && s.User != nil {
		r.Spec.Username, r.Spec.UID = s.User.GetName(), s.User.GetUID()
		r.Spec.Groups = slices.Clone(s.User.GetGroups())
		for key, values := range s.User.GetExtra() {
			if r.Spec.Extra == nil {
				r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
			}
			r.Spec.Extra[key] = values
		}
	}
	r.Status = certificatesv1.CertificateSigningRequestStatus{}
}

// keepConditions undoes changes to conditions of a type; adding and removing
// them is refused by validation.
func keepConditions(r, old *csr, t certificatesv1.RequestConditionType) {
	indexes := func(conditions []certificatesv1.CertificateSigningRequestCondition) (at []int) {
		for i := range conditions {
			if conditions[i].Type == t {
				at = append(at, i)
			}
		}
		return at
	}
	now, before := indexes(r.Status.Conditions), indexes(old.Status.Conditions)
	if len(now) != len(before) {
		return
	}
	for i := range now {
		r.Status.Conditions[now[i]] = old.Status.Conditions[before[i]]
	}
}

func stampConditions(r, old *csr) {
	now := metav1.Now()
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		j := slices.IndexFunc(old.Status.Conditions, func(o certificatesv1.CertificateSigningRequestCondition) bool {
			return o.Type == c.Type && o.Status == c.Status && !o.LastTransitionTime.IsZero()
		})
		if j >= 0 {
			c.LastTransitionTime = old.Status.Conditions[j].LastTransitionTime
		}
	}
}

func ofType(r *csr, t certificatesv1.RequestConditionType) (out []certificatesv1.CertificateSigningRequestCondition) {
	for _, c := range r.Status.Conditions {
		if c.Type == t {
			out = append(out, c)
		}
	}
	return out
}

// validateStatus checks conditions and certificate; issuing says whether this
// endpoint may set the certificate. Approval is not given or taken back here.
func validateStatus(r, old *csr, issuing bool) field.ErrorList {
	errs := conditionRules(r.Status.Conditions, old.Status.Conditions, field.NewPath("status", "conditions"))
	at := field.NewPath("status")
	for _, t := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		switch is, was := ofType(r, t), ofType(old, t); {
		case len(is) < len(was):
			errs = append(errs, field.Forbidden(at.Child("conditions"), fmt.Sprintf("updates may not remove a condition of type %q", t)))
		case !issuing || t == certificatesv1.CertificateFailed:
		case len(is) > len(was):
			errs = append(errs, field.Forbidden(at.Child("conditions"), fmt.Sprintf("updates may not add a condition of type %q", t)))
		case !validation.Equal(is, was):
			errs = append(errs, field.Forbidden(at.Child("conditions"), fmt.Sprintf("updates may not modify a condition of type %q\n%v", t, diff.Diff(was, is))))
		}
	}
	if !bytes.Equal(r.Status.Certificate, old.Status.Certificate) && issued(old.Status.Certificate) == nil {
		if err := issued(r.Status.Certificate); err != nil {
			errs = append(errs, field.Invalid(at.Child("certificate"), "<certificate data>", err.Error()))
		}
	}
	if !validation.Equal(r.Status.Certificate, old.Status.Certificate) {
		if !issuing {
			errs = append(errs, field.Forbidden(at.Child("certificate"), "updates may not set certificate content"))
		} else if len(old.Status.Certificate) > 0 {
			errs = append(errs, field.Forbidden(at.Child("certificate"), "updates may not modify existing certificate content"))
		}
	}
	return errs
}
