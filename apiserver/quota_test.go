package apiserver_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/store/mem"
)

// TestQuotaUnderConcurrentCreators: 32 clients of two servers make objects until a quota
// is used up: there are exactly as many as it allows, and none is refused before.
func TestQuotaUnderConcurrentCreators(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	shared := mem.New()
	same := func(c *apiserver.Config) { c.Store, c.Shared = shared, true }
	_, one := startWith(t, same)
	_, two := startWith(t, same)
	const (
		creators, each = 32, 8
		most           = 100
		name           = corev1.ResourceName("count/configmaps")
	)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{name: resource.MustParse(fmt.Sprint(most))}}}
	made, err := one.CoreV1().ResourceQuotas("default").Create(ctx, quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: corev1.ResourceList{name: resource.MustParse("0")}} // as the controller counts
	if made, err = one.CoreV1().ResourceQuotas("default").UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := two.CoreV1().ResourceQuotas("default").Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion, AllowWatchBookmarks: true, SendInitialEvents: ptr(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	<-w.ResultChan() // the other server knows it
	w.Stop()
	var stored, refused atomic.Int64
	var all sync.WaitGroup
	for i := range creators {
		c := []kubernetes.Interface{one, two}[i%2]
		all.Go(func() {
			for j := range each {
				_, err := c.CoreV1().ConfigMaps("default").Create(ctx, configMap(fmt.Sprintf("m-%d-%d", i, j), nil), metav1.CreateOptions{})
				switch {
				case err == nil:
					stored.Add(1)
				case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=100, limited: count/configmaps=100"):
					refused.Add(1)
				default:
					t.Errorf("creator %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	list, err := one.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if stored.Load() != most || refused.Load() != creators*each-most || len(list.Items) != most {
		t.Errorf("%d stored, %d refused, %d there", stored.Load(), refused.Load(), len(list.Items))
	}
	got, err := two.CoreV1().ResourceQuotas("default").Get(ctx, "q", metav1.GetOptions{})
	if used := got.Status.Used[name]; err != nil || used.Value() != most {
		t.Errorf("%s used, %v", used.String(), err)
	}
}
