package legacytokencleaner_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/legacytokencleaner"
)

const (
	period       = 365 * 24 * time.Hour
	lastUsed     = "kubernetes.io/legacy-token-last-used"
	invalidSince = "kubernetes.io/legacy-token-invalid-since"
)

func token(name, account string, made time.Time, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "u", CreationTimestamp: metav1.NewTime(made), Labels: labels,
			Annotations: map[string]string{corev1.ServiceAccountNameKey: account}},
		Type: corev1.SecretTypeServiceAccountToken,
	}
}

// TestCleaner: what becomes of tokens in the course of two years and a bit.
func TestCleaner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		old := begin.Add(-2 * period)
		today := begin.UTC().Format(time.DateOnly)
		names := []string{"unused", "lately", "mounted", "by-hand", "young"}
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", Namespace: "ns"}}
		for _, n := range names {
			if n != "by-hand" {
				account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: n})
			}
		}
		c := controllerstest.Start(t, []controllers.Controller{legacytokencleaner.Controller()}, nil, []runtime.Object{
			account,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-legacy-service-account-token-tracking", Namespace: "kube-system"},
				Data: map[string]string{"since": old.UTC().Format(time.DateOnly)}},
			token("unused", "sa", old, nil),
			token("lately", "sa", old, map[string]string{lastUsed: today}),
			token("mounted", "sa", old, nil),
			token("by-hand", "sa", old, nil),
			token("young", "sa", begin, nil),
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "mounted"}}}}}},
		}...)
		// after lets time go by and returns the labels of those that are left, "-" for none.
		after := func(d time.Duration) map[string]string {
			time.Sleep(d) // of the bubble
			synctest.Wait()
			out := map[string]string{}
			for _, n := range names {
				s, err := c.Client.CoreV1().Secrets("ns").Get(t.Context(), n, metav1.GetOptions{})
				switch {
				case apierrors.IsNotFound(err):
				case err != nil:
					t.Fatal(err)
				case s.Labels[invalidSince] == "":
					out[n] = "valid"
				default:
					out[n] = "refused"
				}
			}
			return out
		}
		expect := func(what string, got map[string]string, want ...string) {
			t.Helper()
			for i, n := range names {
				if got[n] != want[i] {
					t.Errorf("%s: %s is %q, want %q", what, n, got[n], want[i])
				}
			}
		}
		expect("at once", after(time.Second), "refused", "valid", "valid", "valid", "valid")
		expect("after a year and two days", after(period+48*time.Hour), "", "refused", "valid", "valid", "refused")
		if err := c.Client.CoreV1().Pods("ns").Delete(t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("after the pod", after(25*time.Hour), "", "refused", "refused", "valid", "refused")
		expect("after another year", after(period+48*time.Hour), "", "", "", "valid", "")
	})
}

// TestTracking: as long as the use of tokens has not been noted for a year, none is unused.
func TestTracking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := controllerstest.Start(t, []controllers.Controller{legacytokencleaner.Controller()}, func(e *controllers.Env) { e.Options.LegacyTokenPeriod = 48 * time.Hour },
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", Namespace: "ns"}, Secrets: []corev1.ObjectReference{{Name: "s"}}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kube-apiserver-legacy-service-account-token-tracking", Namespace: "kube-system"},
				Data: map[string]string{"since": begin.UTC().Format(time.DateOnly)}},
			token("s", "sa", begin.Add(-period), nil))
		refused := func(d time.Duration) bool {
			time.Sleep(d)
			synctest.Wait()
			s, err := c.Client.CoreV1().Secrets("ns").Get(t.Context(), "s", metav1.GetOptions{})
			return err == nil && s.Labels[invalidSince] != ""
		}
		if refused(24 * time.Hour) {
			t.Error("refused after a day")
		}
		if !refused(72 * time.Hour) {
			t.Error("not refused after four days")
		}
	})
}
