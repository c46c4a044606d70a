package resourcequota_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/resourcequota"
)

// objects count who is charged.
type objects struct {
	admissiontest.Objects
	charged map[string]bool
}

func (o objects) ChangeStatus(_ context.Context, gvr schema.GroupVersionResource, namespace, name string, change func(runtime.Object) (runtime.Object, error)) error {
	q, err := o.Get(gvr, namespace, name)
	if err != nil {
		return err
	}
	o.charged[name] = true
	_, err = change(q)
	return err
}

func limit(name string, pods int64, scopes ...corev1.ScopedResourceSelectorRequirement) *corev1.ResourceQuota {
	hard := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	q.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}}
	if len(scopes) > 0 {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: scopes}
	}
	return q
}

const config = `
apiVersion: apiserver.config.k8s.io/v1
kind: ResourceQuotaConfiguration
limitedResources:
- resource: pods
  matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]
- resource: persistentvolumeclaims
  matchContains: [gold.storageclass.storage.k8s.io/requests.storage]
`

func TestPlugin(t *testing.T) {
	t.Parallel()
	var (
		high    = corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"}}
		ends    = corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopeTerminating, Operator: corev1.ScopeSelectorOpExists}
		pod     = func(class string) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{PriorityClassName: class}} }
		seconds = int64(1)
		ending  = &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: &seconds}}
		claim   = &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("gold")}}
	)
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	storage := limit("storage", 9)
	storage.Spec.Hard = corev1.ResourceList{"gold.storageclass.storage.k8s.io/requests.storage": resource.MustParse("1Gi")}
	storage.Status = corev1.ResourceQuotaStatus{Hard: storage.Spec.Hard, Used: corev1.ResourceList{"gold.storageclass.storage.k8s.io/requests.storage": resource.MustParse("0")}}
	for name, c := range map[string]struct {
		quotas   []runtime.Object
		resource string
		old, obj runtime.Object
		config   string
		want     string // of the refusal
		charged  string // the quotas, "" for none
	}{
		"none":                        {resource: "pods", obj: pod("")},
		"room":                        {quotas: []runtime.Object{limit("a", 2)}, resource: "pods", obj: pod(""), charged: "a"},
		"full":                        {quotas: []runtime.Object{limit("a", 1)}, resource: "pods", obj: pod(""), want: "exceeded quota: a, requested: pods=1, used: pods=1, limited: pods=1"},
		"one of two is full":          {quotas: []runtime.Object{limit("a", 2), limit("b", 1)}, resource: "pods", obj: pod(""), want: "exceeded quota: b"},
		"into a scope":                {quotas: []runtime.Object{limit("a", 2, ends)}, resource: "pods", old: pod(""), obj: ending, charged: "a"},
		"into a scope that is full":   {quotas: []runtime.Object{limit("a", 1, ends)}, resource: "pods", old: pod(""), obj: ending, want: "exceeded quota: a"},
		"within a scope":              {quotas: []runtime.Object{limit("a", 1, ends)}, resource: "pods", old: ending, obj: ending},
		"a scope that needs a quota":  {resource: "pods", obj: pod("high"), config: config, want: "insufficient quota to match these scopes: [{PriorityClass In [high]}]"},
		"a scope that has one":        {quotas: []runtime.Object{limit("a", 2, high)}, resource: "pods", obj: pod("high"), config: config, charged: "a"},
		"another scope":               {resource: "pods", obj: pod("low"), config: config},
		"storage that needs a quota":  {resource: "persistentvolumeclaims", obj: claim, config: config, want: "insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage"},
		"storage that has one":        {quotas: []runtime.Object{storage}, resource: "persistentvolumeclaims", obj: claim, config: config, charged: "storage"},
		"the same under no such rule": {resource: "persistentvolumeclaims", obj: claim},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := objects{admissiontest.Objects{"resourcequotas": c.quotas}, map[string]bool{}}
			p, err := resourcequota.New(o, []byte(c.config))
			if err != nil {
				t.Fatal(err)
			}
			a := &admission.Attributes{Operation: admission.Create, Resource: corev1.SchemeGroupVersion.WithResource(c.resource), Namespace: "ns", Name: "x", Object: c.obj}
			if c.old != nil {
				a.Operation, a.Old = admission.Update, c.old
			}
			err = p.(admission.Validator).Validate(t.Context(), a)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if (c.charged != "") != o.charged[c.charged] || len(o.charged) > 1 || c.charged == "" && len(o.charged) > 0 {
				t.Errorf("charged %v, want %s", o.charged, c.charged)
			}
		})
	}
	for text, want := range map[string]string{
		"kind: Configuration": "want a ResourceQuotaConfiguration of apiserver.config.k8s.io/v1",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimitedResources: [{}]": "limitedResources[0].resource: Required value",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\nlimits: []":             `unknown field "limits"`,
	} {
		if _, err := resourcequota.New(objects{}, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
