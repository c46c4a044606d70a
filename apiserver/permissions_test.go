package apiserver_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
)

// permit gives bob, and the service account default of default, a permission.
func permit(ctx context.Context, t *testing.T, c kubernetes.Interface, rule rbacv1.PolicyRule) {
	t.Helper()
	role, err := c.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "r-"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "bob"}, {Kind: "ServiceAccount", Namespace: "default", Name: "default"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWritersOfClaims: who may update the status of a resource claim needs permissions
// of their own for its allocation, and for what a driver tells of its devices.
func TestWritersOfClaims(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := start(t)
	claim, err := c.ResourceV1().ResourceClaims("default").Create(ctx, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "c"}}}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(want string, headers ...string) {
		t.Helper()
		claim.ResourceVersion = ""
		body, err := json.Marshal(claim)
		if err != nil {
			t.Fatal(err)
		}
		w := send(t, s, http.MethodPut, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a/status", "application/json", body, headers...)
		if ok := w.Code == http.StatusOK; ok != (want == "") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s, want %q", w.Code, w.Body, want)
		}
	}
	bob := []string{"Impersonate-User", "bob"}
	rule := func(verb, resource string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{"resource.k8s.io"}, Resources: []string{resource}, ResourceNames: names}
	}
	permit(ctx, t, c, rule("update", "resourceclaims/status"))
	claim.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "d.example.com", Pool: "p", Device: "x"}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}}}}}},
	}
	put(`changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"update\" permission: resourceclaims.resource.k8s.io is forbidden: `+
		`User \"bob\" cannot update resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster scope`, bob...)
	permit(ctx, t, c, rule("update", "resourceclaims/binding"))
	put("", bob...)

	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "d.example.com", Pool: "p", Device: "x"}}
	put(`changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[arbitrary-node:update]\" permission: resourceclaims.resource.k8s.io \"d.example.com\" is forbidden: `+
		`User \"bob\" cannot arbitrary-node:update resource \"resourceclaims/driver\" in API group \"resource.k8s.io\" in the namespace \"default\"`, bob...)
	permit(ctx, t, c, rule("associated-node:update", "resourceclaims/driver", "d.example.com"))
	put("[arbitrary-node:update]", bob...)
	account := []string{"Impersonate-User", "system:serviceaccount:default:default", "Impersonate-Extra-Authentication.kubernetes.io%2fnode-Name"}
	put("[arbitrary-node:update]", append(account, "n2")...)
	put("", append(account, "n1")...)
	claim.Status.Devices[0].Driver = "d.example.com"
	claim.Status.Devices = nil
	put("[arbitrary-node:update]", bob...)
	permit(ctx, t, c, rule("arbitrary-node:update", "resourceclaims/driver", "d.example.com"))
	put("", bob...)
}

// TestSignersOfPods: who answers a pod's request for a certificate must be permitted to
// sign for its signer.
func TestSignersOfPods(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := startWith(t, func(config *apiserver.Config) {
		config.RuntimeConfig = map[string]bool{"certificates.k8s.io/v1beta1": true}
	})
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stub, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.CertificatesV1().PodCertificateRequests("default").Create(ctx, &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: certificatesv1.PodCertificateRequestSpec{
		SignerName: "example.com/one", PodName: "p", PodUID: "1", ServiceAccountName: "default", ServiceAccountUID: "2", NodeName: "n", NodeUID: "3", StubPKCS10Request: stub,
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A key and its proof, which only the beta version has, are kept there, and cannot
	// be lost by way of the other version.
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	older := &certificatesv1beta1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "older"}, Spec: certificatesv1beta1.PodCertificateRequestSpec{
		SignerName: "example.com/one", PodName: "p", PodUID: "1", ServiceAccountName: "default", ServiceAccountUID: "2", NodeName: "n", NodeUID: "3",
		PKIXPublicKey: public, ProofOfPossession: ed25519.Sign(key, []byte("2")), //nolint:staticcheck // the beta version's own fields
	}}
	requests := c.CertificatesV1beta1().PodCertificateRequests("default")
	if _, err := requests.Create(ctx, older, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature") {
		t.Errorf("a proof for another pod: %v", err)
	}
	older.Spec.ProofOfPossession = ed25519.Sign(key, []byte("1")) //nolint:staticcheck // see above
	if _, err := requests.Create(ctx, older, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := requests.Get(ctx, "older", metav1.GetOptions{})
	if err != nil || !bytes.Equal(got.Spec.PKIXPublicKey, public) || len(got.Spec.ProofOfPossession) == 0 || got.Annotations != nil { //nolint:staticcheck // see above
		t.Errorf("kept are %+v, %v", got, err)
	}
	newer, err := c.CertificatesV1().PodCertificateRequests("default").Get(ctx, "older", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	newer.Annotations = nil
	if _, err := c.CertificatesV1().PodCertificateRequests("default").Update(ctx, newer, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a key that is lost: %v", err)
	}
	r.Status.Conditions = []metav1.Condition{{Type: certificatesv1.PodCertificateRequestConditionTypeDenied, Status: metav1.ConditionTrue, Reason: "No", LastTransitionTime: metav1.Now()}}
	put := func(want string) {
		t.Helper()
		r.ResourceVersion = ""
		body, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.CertificatesV1().PodCertificateRequests("default").Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		body = []byte(strings.Replace(string(body), `"name":"a"`, `"name":"a","resourceVersion":"`+got.ResourceVersion+`"`, 1))
		w := send(t, s, http.MethodPut, "/apis/certificates.k8s.io/v1/namespaces/default/podcertificaterequests/a/status", "application/json", body, "Impersonate-User", "bob")
		if ok := w.Code == http.StatusOK; ok != (want == "") || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d %s, want %q", w.Code, w.Body, want)
		}
	}
	group := []string{certificatesv1.GroupName}
	permit(ctx, t, c, rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: group, Resources: []string{"podcertificaterequests/status"}})
	put(`spec.signerName: Forbidden: User \"bob\" is not permitted to \"sign\" for signer \"example.com/one\"`)
	permit(ctx, t, c, rbacv1.PolicyRule{Verbs: []string{"sign"}, APIGroups: group, Resources: []string{"signers"}, ResourceNames: []string{"example.com/*"}})
	put("")
}
