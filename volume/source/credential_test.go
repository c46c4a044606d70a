package source_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/periplus/periplus/volume"
	"github.com/periplus/periplus/volume/source"
)

func projecting(source corev1.VolumeProjection) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-p"},
		Spec: corev1.PodSpec{ServiceAccountName: "sa", Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source}}}}}},
	}
}

func trust(name, signer, label string, certificates ...string) *certificatesv1.ClusterTrustBundle {
	b := &certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{"l": label}},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer},
	}
	for _, c := range certificates {
		b.Spec.TrustBundle += "junk\n" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(c), Headers: map[string]string{"a": "b"}}))
	}
	return b
}

// contents are the certificates of a PEM file, in any order, and what is wrong with it.
func contents(t *testing.T, file []byte) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		if out[string(block.Bytes)] || len(block.Headers) > 0 {
			t.Errorf("certificate %s twice, or with headers", block.Bytes)
		}
		out[string(block.Bytes)] = true
	}
	return out
}

// TestTrustAnchors: by name, by signer and labels; each certificate once; absent ones as
// upstream; changes are told.
func TestTrustAnchors(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(trust("a", "", "", "1", "1"), trust("ex:b", "ex/s", "x", "1", "2"), trust("ex:c", "ex/s", "y", "3"))
	changed := make(chan string, 10)
	s, err := source.New(source.Config{Client: client, Node: noNode, Changed: func(kind, _, _ string) { changed <- kind }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	name, signer, yes := "a", "ex/s", true
	pod := projecting(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: &name}})
	s.AddPod(pod)
	absent := "z"
	for what, c := range map[string]struct {
		p    corev1.ClusterTrustBundleProjection
		want string // certificates, or the error
	}{
		"name":              {corev1.ClusterTrustBundleProjection{Name: &name}, "1"},
		"absent":            {corev1.ClusterTrustBundleProjection{Name: &absent}, `while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "z" not found`},
		"absent, optional":  {corev1.ClusterTrustBundleProjection{Name: &absent, Optional: &yes}, ""},
		"signer, all":       {corev1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: &metav1.LabelSelector{}}, "123"},
		"signer, some":      {corev1.ClusterTrustBundleProjection{SignerName: &signer, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"l": "y"}}}, "3"},
		"signer, nothing":   {corev1.ClusterTrustBundleProjection{SignerName: &signer}, "combination of signerName and labelSelector matched zero ClusterTrustBundles"},
		"nothing, optional": {corev1.ClusterTrustBundleProjection{SignerName: &signer, Optional: &yes}, ""},
	} {
		file, err := s.TrustAnchors(&c.p)
		if err != nil {
			if err.Error() != c.want {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		got := contents(t, file)
		if len(got) != len(c.want) {
			t.Errorf("%s: %v", what, got)
		}
		for _, r := range c.want {
			if !got[string(r)] {
				t.Errorf("%s: %c is missing", what, r)
			}
		}
	}
	if _, err := client.CertificatesV1().ClusterTrustBundles().Create(t.Context(), trust("z", "", "", "9"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if kind := <-changed; kind != volume.KindTrustBundle {
		t.Errorf("told of %s", kind)
	}
	if file, err := s.TrustAnchors(&corev1.ClusterTrustBundleProjection{Name: &absent}); err != nil || !contents(t, file)["9"] {
		t.Errorf("after it was made: %v", err)
	}
	s.RemovePod(pod.UID)
	if _, err := s.TrustAnchors(&corev1.ClusterTrustBundleProjection{Name: &name}); err == nil {
		t.Error("bundles are watched without a pod")
	}
}

// TestCredential follows a certificate: asked for, issued, asked for anew when the signer
// wants it, overdue, refused.
func TestCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa", UID: "uid-sa"}})
		count := 0
		asked := make(chan *certificatesv1.PodCertificateRequest, 9)
		client.PrependReactor("create", "podcertificaterequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			q, ok := a.(clienttesting.CreateAction).GetObject().(*certificatesv1.PodCertificateRequest)
			if !ok {
				return true, nil, errors.New("not a request")
			}
			q.Name = "req-" + strconv.Itoa(count)
			count++
			asked <- q.DeepCopy()
			return false, nil, nil
		})
		node := func() (*corev1.Node, error) {
			return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}}, nil
		}
		var told []string
		s, err := source.New(source.Config{Client: client, Node: node, Event: func(_ *corev1.Pod, reason, _ string) { told = append(told, reason) }})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p := &corev1.PodCertificateProjection{SignerName: "ex/s", KeyType: "ECDSAP256"}
		pod := projecting(corev1.VolumeProjection{PodCertificate: p})
		s.AddPod(pod)
		get := func() (volume.Credential, error) {
			synctest.Wait()
			return s.Credential(t.Context(), pod, volume.Projection{Volume: "v"}, p)
		}
		answer := func(q *certificatesv1.PodCertificateRequest, condition string) {
			q.ResourceVersion += "1"
			q.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "R", Message: "m"}}
			q.Status.CertificateChain = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(q.Name)}))
			now := time.Now()
			renew, end := metav1.NewTime(now.Add(time.Hour)), metav1.NewTime(now.Add(2*time.Hour))
			q.Status.BeginRefreshAt, q.Status.NotAfter = &renew, &end
			if _, err := client.CertificatesV1().PodCertificateRequests("ns").Update(t.Context(), q, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // the second time nothing new is asked for
			if _, err := get(); err == nil || err.Error() != "credential bundle is not issued yet" {
				t.Fatalf("at first: %v", err)
			}
		}
		q := <-asked
		if q.Spec.PodUID != "uid-p" || q.Spec.ServiceAccountUID != "uid-sa" || q.Spec.NodeUID != "uid-n" || q.OwnerReferences[0].UID != "uid-p" {
			t.Errorf("asked %+v", q.Spec)
		}
		if r, err := x509.ParseCertificateRequest(q.Spec.StubPKCS10Request); err != nil || r.CheckSignature() != nil {
			t.Errorf("proof: %v", err)
		}
		answer(q, certificatesv1.PodCertificateRequestConditionTypeIssued)
		c, err := get()
		if err != nil || !strings.Contains(string(c.Key), "PRIVATE KEY") || !contents(t, c.Chain)["req-0"] {
			t.Fatalf("issued: %v", err)
		}
		if wait := time.Until(c.LookAt); wait < time.Hour || wait > 66*time.Minute {
			t.Errorf("look again in %s", wait)
		}
		<-time.After(time.Until(c.LookAt))
		again, err := get() // asks, and gives the old one
		if err != nil || string(again.Key) != string(c.Key) || len(asked) != 1 {
			t.Fatalf("when it is to be renewed: %v, %d asked", err, len(asked))
		}
		<-time.After(time.Until(again.LookAt))
		if again, err = get(); err != nil || len(told) != 1 || told[0] != "CertificateOverdueForRefresh" {
			t.Errorf("overdue: %v, told %v", err, told)
		}
		answer(<-asked, certificatesv1.PodCertificateRequestConditionTypeIssued)
		renewed, err := get()
		if err != nil || string(renewed.Key) == string(c.Key) {
			t.Errorf("renewed: %v", err)
		}
		<-time.After(time.Until(renewed.LookAt))
		if _, err := get(); err != nil {
			t.Error(err)
		}
		answer(<-asked, certificatesv1.PodCertificateRequestConditionTypeDenied)
		if _, err := get(); err == nil || err.Error() != `PodCertificateRequest was permanently denied: reason="R" message="m"` {
			t.Errorf("refused: %v", err)
		}
		if last := told[len(told)-1]; last != "Denied" {
			t.Errorf("told %v", told)
		}
	})
}
