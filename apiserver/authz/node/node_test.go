package node_test

import (
	"strings"
	"testing"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/node"
	"github.com/periplus/periplus/apiserver/authz/rbac"
)

// stored are objects by resource.
type stored map[string][]runtime.Object

func (s stored) List(gvr schema.GroupVersionResource, namespace string) (out []runtime.Object, err error) {
	for _, o := range s[gvr.Resource] {
		if namespace == "" || o.(metav1.Object).GetNamespace() == namespace {
			out = append(out, o)
		}
	}
	return out, nil
}

func (s stored) Get(gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	list, _ := s.List(gvr, namespace)
	for _, o := range list {
		if o.(metav1.Object).GetName() == name {
			return o, nil
		}
	}
	return nil, apierrors.NewNotFound(gvr.GroupResource(), name)
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "a", Name: name} }

func ptr[T any](v T) *T { return &v }

func pod(name, on string, spec corev1.PodSpec) *corev1.Pod {
	spec.NodeName = on
	return &corev1.Pod{ObjectMeta: named(name), Spec: spec}
}

// cluster has a pod with one of everything on n1, and another one on n2.
func cluster() stored {
	full := pod("full", "n1", corev1.PodSpec{
		ServiceAccountName: "app",
		ImagePullSecrets:   []corev1.LocalObjectReference{{Name: "pull"}},
		Containers: []corev1.Container{{Name: "c",
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "env"}}}},
			Env:     []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "var"}}}}},
		}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			{Name: "all", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "projected"}}}}}}},
		},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr("gpu")}, {Name: "made", ResourceClaimTemplateName: ptr("t")}},
	})
	full.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "made", ResourceClaimName: ptr("full-made")}}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef: &corev1.ObjectReference{Namespace: "a", Name: "data"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			NodeStageSecretRef: &corev1.SecretReference{Namespace: "drivers", Name: "stage"},
		}},
	}}
	return stored{
		"pods":                   {full, pod("other", "n2", corev1.PodSpec{ServiceAccountName: "other"})},
		"persistentvolumes":      {volume},
		"volumeattachments":      {&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "att"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "n1"}}},
		"resourceslices":         {&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}, Spec: resourcev1.ResourceSliceSpec{NodeName: ptr("n1")}}},
		"podcertificaterequests": {&certificatesv1beta1.PodCertificateRequest{ObjectMeta: named("pcr"), Spec: certificatesv1beta1.PodCertificateRequestSpec{NodeName: "n1"}}},
	}
}

// TestNode asks as n1. What is "yes" is "no" for n2, unless the line says "both".
func TestNode(t *testing.T) {
	t.Parallel()
	m := node.New(cluster(), rbac.NodeAllows)
	for _, line := range []string{
		"yes get secrets a pull",
		"yes list secrets a var",
		"yes watch secrets a projected",
		"yes get secrets drivers stage",
		"no  get secrets a stage",
		"no  get secrets a other",
		"no  list secrets a -",
		"no  list secrets - -",
		"no  delete secrets a pull",
		"no  create secrets a -",
		"yes get configmaps a env",
		"no  update configmaps a env",
		"yes get persistentvolumeclaims a data",
		"yes get persistentvolumeclaims a full-scratch",
		"yes patch persistentvolumeclaims/status a data",
		"no  list persistentvolumeclaims a data",
		"no  patch persistentvolumeclaims a data",
		"yes get persistentvolumes - pv",
		"no  list persistentvolumes - -",
		"yes create serviceaccounts/token a app",
		"yes get serviceaccounts a app",
		"no  create serviceaccounts/token a nobody",
		"no  create serviceaccounts a -",
		"yes get storage.k8s.io:volumeattachments - att",
		"no  list storage.k8s.io:volumeattachments - -",
		"yes get resource.k8s.io:resourceclaims a gpu",
		"yes get resource.k8s.io:resourceclaims a full-made",
		"no  get resource.k8s.io:resourceclaims a x",
		"both create resource.k8s.io:resourceslices - -",
		"yes delete resource.k8s.io:resourceslices - slice",
		"yes list resource.k8s.io:resourceslices - - spec.nodeName=n1",
		"no  list resource.k8s.io:resourceslices - -",
		"yes update coordination.k8s.io:leases kube-node-lease n1",
		"both create coordination.k8s.io:leases kube-node-lease -",
		"no  get coordination.k8s.io:leases kube-system n1",
		"no  list coordination.k8s.io:leases kube-node-lease -",
		"yes patch storage.k8s.io:csinodes - n1",
		"no  list storage.k8s.io:csinodes - -",
		"yes get nodes - n1",
		"yes watch nodes - n1",
		"no  list nodes - -",
		"both update nodes/status - n1",
		"both create nodes - -",
		"no  delete nodes - n1",
		"yes get pods a full",
		"yes list pods - - spec.nodeName=n1",
		"no  list pods - - spec.nodeName!=n1",
		"no  list pods a -",
		"both delete pods a full",
		"both create pods/eviction a full",
		"no  update pods a full",
		"no  create pods/exec a full",
		"yes get certificates.k8s.io:podcertificaterequests a pcr",
		"both create certificates.k8s.io:podcertificaterequests a -",
		"no  update certificates.k8s.io:podcertificaterequests/status a pcr",
		"both list services - -",
		"both get endpoints a x",
		"no  list apps:deployments a -",
		"both create authentication.k8s.io:tokenreviews - -",
	} {
		word := strings.Fields(line)
		q := authz.Question{Verb: word[1], IsResource: true, Version: "v1"}
		group, resource, ok := strings.Cut(word[2], ":")
		if !ok {
			group, resource = "", group
		}
		q.Group = group
		q.Resource, q.Subresource, _ = strings.Cut(resource, "/")
		q.Namespace, q.Name = strings.TrimPrefix(word[3], "-"), strings.TrimPrefix(word[4], "-")
		if len(word) > 5 {
			q.FieldSelector = word[5]
		}
		for name, want := range map[string]bool{"n1": word[0] != "no", "n2": word[0] == "both"} {
			q.User = &user.DefaultInfo{Name: "system:node:" + name, Groups: []string{user.NodesGroup, user.AllAuthenticated}}
			d, reason, err := m.Authorize(t.Context(), &q)
			if got := d == authz.Allow; got != want || err != nil {
				t.Errorf("%s asks %q: allowed %v, reason %q, error %v", name, line, got, reason, err)
			}
		}
		// Somebody who only has the name is not a node.
		q.User = &user.DefaultInfo{Name: "system:node:n1"}
		if d, _, _ := m.Authorize(t.Context(), &q); d != authz.NoOpinion {
			t.Errorf("without the group: %q: decision %d", line, d)
		}
	}
}
