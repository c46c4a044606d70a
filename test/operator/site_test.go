package operator_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	envtest "github.com/periplus/periplus/apitest"
	"github.com/periplus/periplus/test/operator"
)

func site(name, title string) *operator.Site {
	return &operator.Site{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: operator.SiteSpec{Title: title}}
}

var _ = Describe("Site", func() {
	It("is defaulted and validated by webhooks", func() {
		refused := k8sClient.Create(ctx, site("untitled", ""))
		Expect(apierrors.IsForbidden(refused)).To(BeTrue())
		Expect(refused).To(MatchError(ContainSubstring(`admission webhook "vsite.example.com" denied the request: a site needs a title`)))
		s := site("defaulted", "Hello")
		Expect(k8sClient.Create(ctx, s)).To(Succeed())
		Expect(*s.Spec.Replicas).To(Equal(int32(2)))
		s.Spec.Title = "Other"
		Eventually(func() error { // the operator writes as well
			if err := k8sClient.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
				return err
			}
			s.Spec.Title = "Other"
			return k8sClient.Update(ctx, s)
		}).Should(MatchError(ContainSubstring("the title of a site cannot change")))
	})

	It("is checked against its schema", func() {
		s, below := site("negative", "Hello"), int32(-1)
		s.Spec.Replicas = &below
		Expect(apierrors.IsInvalid(k8sClient.Create(ctx, s))).To(BeTrue())
	})

	It("gets a page and servers, which are its own", func() {
		s := site("whole", "Welcome")
		Expect(k8sClient.Create(ctx, s)).To(Succeed())
		key := client.ObjectKeyFromObject(s)
		page, servers := &corev1.ConfigMap{}, &appsv1.Deployment{}
		Eventually(func() error { return k8sClient.Get(ctx, key, page) }).Should(Succeed())
		Expect(page.Data).To(HaveKeyWithValue("index.html", "Welcome"))
		Expect(metav1.IsControlledBy(page, s)).To(BeTrue())
		Eventually(func() error { return k8sClient.Get(ctx, key, servers) }).Should(Succeed())
		Expect(*servers.Spec.Replicas).To(Equal(int32(2)))

		By("following the state of the servers, which the test plays")
		servers.Status = appsv1.DeploymentStatus{ObservedGeneration: servers.Generation, Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, UpdatedReplicas: 2}
		Expect(k8sClient.Status().Update(ctx, servers)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, s)).To(Succeed())
			g.Expect(s.Status.Ready).To(Equal(int32(2)))
			g.Expect(meta.IsStatusConditionTrue(s.Status.Conditions, "Ready")).To(BeTrue())
		}).Should(Succeed())

		By("telling what it did")
		Eventually(func(g Gomega) {
			list := &eventsv1.EventList{}
			g.Expect(k8sClient.List(ctx, list, client.InNamespace("default"))).To(Succeed())
			g.Expect(list.Items).To(ContainElement(HaveField("Note", "made deployment whole")))
		}).Should(Succeed())

		By("mending what others change")
		page.Data = nil
		Expect(k8sClient.Update(ctx, page)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, key, page)).To(Succeed())
			g.Expect(page.Data).To(HaveKey("index.html"))
		}).Should(Succeed())

		By("saying farewell")
		Expect(k8sClient.Delete(ctx, s)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(k8sClient.Get(ctx, key, s)) }).Should(BeTrue())
		key.Name += "-farewell"
		Expect(k8sClient.Get(ctx, key, page)).To(Succeed())
	})

	It("is nobody's without the right", func() {
		user, err := testEnv.AddUser(envtest.User{Name: "guest"}, cfg)
		Expect(err).NotTo(HaveOccurred())
		guest, err := client.New(user.Config(), client.Options{Scheme: k8sClient.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		err = guest.List(ctx, &operator.SiteList{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	})
})
