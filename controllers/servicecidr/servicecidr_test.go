package servicecidr_test

import (
	"context"
	"slices"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/controllers/controllerstest"
	"github.com/periplus/periplus/controllers/servicecidr"
)

const finalizer = "networking.k8s.io/service-cidr-finalizer"

// A range that is being deleted stays until no address is left that only it holds.
func TestUsedRangeStays(t *testing.T) {
	t.Parallel()
	ctx, before := context.Background(), metav1.NewTime(time.Now().Add(-time.Minute))
	of := func(name, cidr string, deleted bool) *networkingv1.ServiceCIDR {
		c := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{cidr}}}
		if deleted {
			c.DeletionTimestamp, c.Finalizers = &before, []string{finalizer, "other/keeps-the-object"}
		}
		return c
	}
	address := func(ip string) *networkingv1.IPAddress {
		return &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: ip, Labels: map[string]string{networkingv1.LabelManagedBy: "ipallocator.k8s.io"}}}
	}
	w := controllerstest.Start(t, []controllers.Controller{servicecidr.Controller()}, nil,
		of("fresh", "10.1.0.0/24", false), of("used", "10.2.0.0/24", true), of("unused", "10.3.0.0/24", true), of("inside", "10.1.0.128/25", true),
		address("10.2.0.7"), address("10.1.0.200"))
	get := func(name string) *networkingv1.ServiceCIDR {
		c, err := w.Client.NetworkingV1().ServiceCIDRs().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	kept := func(name string) bool { return slices.Contains(get(name).Finalizers, finalizer) }
	w.Until("a new range is protected and ready", func() bool {
		return kept("fresh") && meta.IsStatusConditionTrue(get("fresh").Status.Conditions, networkingv1.ServiceCIDRConditionReady)
	})
	w.Until("one without addresses goes", func() bool { return !kept("unused") })
	w.Until("one whose addresses another holds goes", func() bool { return !kept("inside") })
	w.Until("one that is used says that it terminates", func() bool {
		c := meta.FindStatusCondition(get("used").Status.Conditions, networkingv1.ServiceCIDRConditionReady)
		return c != nil && c.Status == metav1.ConditionFalse && c.Reason == networkingv1.ServiceCIDRReasonTerminating
	})
	if !kept("used") {
		t.Fatal("a range with an address went")
	}
	if err := w.Client.NetworkingV1().IPAddresses().Delete(ctx, "10.2.0.7", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Until("it goes with its last address", func() bool { return !kept("used") })
}
