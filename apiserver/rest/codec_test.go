package rest_test

import (
	"bytes"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/apiserver/rest"
)

// TestProtobufIsUpstreams compares envelopes with those of the library.
func TestProtobufIsUpstreams(t *testing.T) {
	t.Parallel()
	codecs := rest.NewCodecs(scheme.Scheme)
	library := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	long := make([]byte, 300)
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"x": "1", "a": "2"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: string(bytes.Repeat([]byte("i"), 300))}}},
	}
	for name, obj := range map[string]runtime.Object{
		"pod":            pod,
		"empty":          &corev1.ConfigMap{},
		"with data":      &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"k": long}},
		"of a group":     &appsv1.Deployment{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: "d"}},
		"status":         &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Message: "no"},
		"metadata alone": &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{Name: "p"}},
	} {
		var want bytes.Buffer
		if err := library.Encode(obj, &want); err != nil {
			t.Fatal(err)
		}
		got, err := codecs.EncodeProtobuf(obj)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: %x, %v; want %x", name, got, err, want.Bytes())
		}
		if cap(got) != len(got) && cap(got) > len(got)+len(got)/2 {
			t.Errorf("%s: %d bytes take %d", name, len(got), cap(got))
		}
	}
}
