package podcertificatecleaner_test

import (
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/podcertificatecleaner"
)

func request(name string, age time.Duration) *certificatesv1.PodCertificateRequest {
	return &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
	}}
}

// TestClean: what is older than half an hour goes.
func TestClean(t *testing.T) {
	t.Parallel()
	w := controllerstest.Start(t, []controllers.Controller{podcertificatecleaner.Controller()}, nil,
		request("old", 31*time.Minute), request("new", time.Minute))
	w.Until("the old one is gone", func() bool {
		all, err := w.Client.CertificatesV1().PodCertificateRequests("default").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(all.Items) == 1 && all.Items[0].Name == "new"
	})
}
