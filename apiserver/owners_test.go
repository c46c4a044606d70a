package apiserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
)

// agent returns a client that says who it is in its user agent only.
func agent(t *testing.T, config *restclient.Config, name string) *kubernetes.Clientset {
	t.Helper()
	config.UserAgent = name
	return clientOf(t, config)
}

func fieldsOf(entries []metav1.ManagedFieldsEntry, manager string) string {
	for _, e := range entries {
		if e.Manager == manager {
			return e.FieldsV1.GetRawString()
		}
	}
	return ""
}

// TestOwnersOfWrites: every write is noted, with who wrote it, in which version and through
// which subresource.
func TestOwnersOfWrites(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := start(t)
	config := func() *restclient.Config { return s.ClientConfig("admin", "system:masters") }
	maps := agent(t, config(), "tool/v1.2 (linux)").CoreV1().ConfigMaps("default")
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "1"}}, Data: map[string]string{"x": "1", "y": "1"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fieldsOf(made.ManagedFields, "tool"), `{"f:data":{".":{},"f:x":{},"f:y":{}},"f:metadata":{"f:labels":{".":{},"f:l":{}}}}`; got != want || made.ManagedFields[0].Time == nil {
		t.Errorf("created: %s\nwant %s", got, want)
	}
	// Another changes one field, drops one and adds one. It sends the entries back.
	made.Data = map[string]string{"x": "2", "z": "1"}
	updated, err := maps.Update(ctx, made, metav1.UpdateOptions{FieldManager: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fieldsOf(updated.ManagedFields, "tool"), fieldsOf(updated.ManagedFields, "other"); a != `{"f:data":{},"f:metadata":{"f:labels":{".":{},"f:l":{}}}}` || b != `{"f:data":{"f:x":{},"f:z":{}}}` {
		t.Errorf("tool %s, other %s", a, b)
	}
	// The same again, by a third, is no write.
	same, err := maps.Update(ctx, updated, metav1.UpdateOptions{FieldManager: "third"})
	if err != nil || same.ResourceVersion != updated.ResourceVersion || owners(same.ManagedFields) != owners(updated.ManagedFields) {
		t.Errorf("nothing: %v %v", owners(same.ManagedFields), err)
	}
	// Nobody may write nonsense.
	nonsense := updated.DeepCopy()
	nonsense.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x", Operation: "Steal", APIVersion: "v1", FieldsType: "FieldsV1"}}
	nonsense.Labels = nil
	kept, err := maps.Update(ctx, nonsense, metav1.UpdateOptions{FieldManager: "other"})
	if err != nil || fieldsOf(kept.ManagedFields, "tool") != `{"f:data":{}}` {
		t.Errorf("nonsense: %v %v", kept, err)
	}
	gone, err := maps.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`), metav1.PatchOptions{})
	if err != nil || len(gone.ManagedFields) != 0 {
		t.Errorf("reset: %v %v", gone, err)
	}
}

// TestOwnersOfPods: the kubelet owns the status through its subresource; binding is nobody's.
func TestOwnersOfPods(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, c := start(t)
	pods := c.CoreV1().Pods("default")
	if _, err := c.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		t.Log(err)
	}
	if _, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{Message: "may not be set here"},
	}, metav1.CreateOptions{FieldManager: "creator"}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Bind(ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubelet := clientOf(t, s.ClientConfig("system:node:n1", "system:nodes", "system:masters"))
	got, err := kubelet.CoreV1().Pods("default").Patch(ctx, "p", types.StrategicMergePatchType, []byte(`{"spec":{"hostname":"ignored"},"status":{"phase":"Running","podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	if owners(got.ManagedFields) != "creator Update v1; kubelet Update v1 status" && owners(got.ManagedFields) != "kubelet Update v1 status; creator Update v1" {
		t.Errorf("owners: %s", owners(got.ManagedFields))
	}
	if fields, want := fieldsOf(got.ManagedFields, "kubelet"), `{"f:status":{"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"10.0.0.1\"}":{".":{},"f:ip":{}}}}}`; fields != want {
		t.Errorf("kubelet: %s\nwant %s", fields, want)
	}
	if fields := fieldsOf(got.ManagedFields, "creator"); strings.Contains(fields, "nodeName") || strings.Contains(fields, "status") ||
		!strings.Contains(fields, `"f:containers":{"k:{\"name\":\"c\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{}`) {
		t.Errorf("creator: %s", fields)
	}
	data, err := json.Marshal(got.ManagedFields)
	if err != nil || strings.Contains(string(data), "hostname") {
		t.Errorf("what cannot be changed here: %s", data)
	}
}

// TestOwnersOverVersions: a write in one version takes fields from those who wrote in another.
func TestOwnersOverVersions(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	_, c := start(t)
	target := int32(50)
	if _, err := c.AutoscalingV1().HorizontalPodAutoscalers("default").Create(ctx, &autoscalingv1.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "h", Labels: map[string]string{"a": "1"}},
		Spec:       autoscalingv1.HorizontalPodAutoscalerSpec{MaxReplicas: 3, ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}, TargetCPUUtilizationPercentage: &target},
	}, metav1.CreateOptions{FieldManager: "one"}); err != nil {
		t.Fatal(err)
	}
	got, err := c.AutoscalingV2().HorizontalPodAutoscalers("default").Patch(ctx, "h", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"2"}},"spec":{"maxReplicas":4}}`), metav1.PatchOptions{FieldManager: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if s := sortedOwners(got.ManagedFields); s != "one Update autoscaling/v1; two Update autoscaling/v2" {
		t.Error(s)
	}
	if one := fieldsOf(got.ManagedFields, "one"); strings.Contains(one, "maxReplicas") || strings.Contains(one, "f:a") || !strings.Contains(one, "targetCPU") {
		t.Errorf("one: %s", one)
	}
	if two := fieldsOf(got.ManagedFields, "two"); two != `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:maxReplicas":{}}}` {
		t.Errorf("two: %s", two)
	}
}

// TestOwnersOfCustomResources are noted at every write, too.
func TestOwnersOfCustomResources(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := start(t)
	c := dynamicClient(t, s)
	define(t, c, crontabs)
	tabs := c.Resource(cronTabs).Namespace("default")
	made, err := tabs.Create(ctx, cronTab(t, "a", `{cronSpec: "* * * * *", replicas: 2}`), metav1.CreateOptions{FieldManager: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := setNested(made.Object, int64(3), "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	got, err := tabs.Update(ctx, made, metav1.UpdateOptions{FieldManager: "two"})
	if err != nil {
		t.Fatal(err)
	}
	if one := fieldsOf(got.GetManagedFields(), "one"); strings.Contains(one, "replicas") || !strings.Contains(one, "cronSpec") {
		t.Errorf("one: %s", one)
	}
	if two := fieldsOf(got.GetManagedFields(), "two"); two != `{"f:spec":{"f:replicas":{}}}` {
		t.Errorf("two: %s", two)
	}
}
