package printers

import (
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/duration"
)

func rbacTables() tables {
	bound := columns{
		name(),
		text("Role", doc(rbacv1.RoleBinding{}, "roleRef")),
		age(),
		wide(text("Users", "Users among the subjects.")),
		wide(text("Groups", "Groups among the subjects.")),
		wide(text("ServiceAccounts", "Service accounts among the subjects.")),
	}
	return tables{
		"rolebindings": table(bound, func(b *rbacv1.RoleBinding) []any {
			return binding(b, &b.RoleRef, b.Subjects)
		}),
		"clusterrolebindings": table(bound, func(b *rbacv1.ClusterRoleBinding) []any {
			return binding(b, &b.RoleRef, b.Subjects)
		}),
	}
}

func binding(b metav1.Object, role *rbacv1.RoleRef, subjects []rbacv1.Subject) []any {
	var users, groups, accounts []string
	for _, s := range subjects {
		switch s.Kind {
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		}
	}
	return []any{
		b.GetName(), role.Kind + "/" + role.Name, old(b),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}

func certificateTables() tables {
	return tables{
		"certificatesigningrequests": table(columns{
			name(),
			age(),
			text("SignerName", doc(certificatesv1.CertificateSigningRequestSpec{}, "signerName")),
			text("Requestor", doc(certificatesv1.CertificateSigningRequestSpec{}, "username")),
			text("RequestedDuration", doc(certificatesv1.CertificateSigningRequestSpec{}, "expirationSeconds")),
			text("Condition", doc(certificatesv1.CertificateSigningRequestStatus{}, "conditions")),
		}, func(r *certificatesv1.CertificateSigningRequest) []any {
			lifetime := none
			if s := r.Spec.ExpirationSeconds; s != nil {
				lifetime = duration.HumanDuration(time.Duration(*s) * time.Second)
			}
			return []any{r.Name, old(r), or(r.Spec.SignerName, none), r.Spec.Username, lifetime, requestStatus(r)}
		}),
		"clustertrustbundles": table(columns{name(), text("SignerName", doc(certificatesv1.ClusterTrustBundleSpec{}, "signerName"))},
			func(b *certificatesv1.ClusterTrustBundle) []any { return []any{b.Name, or(b.Spec.SignerName, none)} }),
		"podcertificaterequests": table(columns{
			name(),
			text("PodName", doc(certificatesv1.PodCertificateRequestSpec{}, "podName")),
			text("ServiceAccountName", doc(certificatesv1.PodCertificateRequestSpec{}, "serviceAccountName")),
			text("NodeName", doc(certificatesv1.PodCertificateRequestSpec{}, "nodeName")),
			text("SignerName", doc(certificatesv1.PodCertificateRequestSpec{}, "signerName")),
			text("State", "Pending, Issued, Denied or Failed."),
			text("UnverifiedUserAnnotations", doc(certificatesv1.PodCertificateRequestSpec{}, "unverifiedUserAnnotations")),
		}, podCertificateRequest),
	}
}

func requestStatus(r *certificatesv1.CertificateSigningRequest) string {
	has := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range r.Status.Conditions {
		has[c.Type] = true
	}
	status := "Pending"
	switch {
	case has[certificatesv1.CertificateDenied]:
		status = "Denied"
	case has[certificatesv1.CertificateApproved]:
		status = "Approved"
	}
	if has[certificatesv1.CertificateFailed] {
		status += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		status += ",Issued"
	}
	return status
}

func podCertificateRequest(r *certificatesv1.PodCertificateRequest) []any {
	state := "Pending"
	for _, c := range r.Status.Conditions {
		switch c.Type {
		case certificatesv1.PodCertificateRequestConditionTypeIssued,
			certificatesv1.PodCertificateRequestConditionTypeDenied,
			certificatesv1.PodCertificateRequestConditionTypeFailed:
			state = c.Type
		}
	}
	return []any{
		r.Name, r.Spec.PodName, r.Spec.ServiceAccountName, string(r.Spec.NodeName), r.Spec.SignerName, state,
		labels.FormatLabels(r.Spec.UnverifiedUserAnnotations),
	}
}
