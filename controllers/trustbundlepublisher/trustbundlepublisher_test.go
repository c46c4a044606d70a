package trustbundlepublisher_test

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/trustbundlepublisher"
)

func bundle(name, signer string) *certificatesv1.ClusterTrustBundle {
	return &certificatesv1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       certificatesv1.ClusterTrustBundleSpec{SignerName: signer, TrustBundle: "old"},
	}
}

// TestPublish: the bundle of the server's signer is made, its older ones go, those of
// others stay.
func TestPublish(t *testing.T) {
	t.Parallel()
	w := controllerstest.Start(t, []controllers.Controller{trustbundlepublisher.Controller()},
		func(e *controllers.Env) { e.Options.RootCA = []byte("root") },
		bundle("kubernetes.io:kube-apiserver-serving:0", "kubernetes.io/kube-apiserver-serving"),
		bundle("example.com:a:1", "example.com/a"))
	// The name of the content, as sha256sum prints it.
	const want = "kubernetes.io:kube-apiserver-serving:4813494d137e1631bba301d5"
	w.Until("there is the new one and that of the other signer", func() bool {
		all, err := w.Client.CertificatesV1().ClusterTrustBundles().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(all.Items) != 2 {
			return false
		}
		return all.Items[0].Name == "example.com:a:1" && all.Items[1].Name == want && all.Items[1].Spec.TrustBundle == "root"
	})
}
