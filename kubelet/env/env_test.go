package env_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/kubelet/env"
)

type objects struct{}

func (objects) ConfigMap(_, name string) (*corev1.ConfigMap, error) {
	if name != "cm" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return &corev1.ConfigMap{Data: map[string]string{"b": "2", "a": "1", "not=valid": "x"}}, nil
}

func (objects) Secret(_, name string) (*corev1.Secret, error) {
	if name != "s" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	return &corev1.Secret{Data: map[string][]byte{"key": []byte("hidden")}}, nil
}

func render(vars []env.Var) string {
	var out []string
	for _, v := range vars {
		out = append(out, v.Name+"="+v.Value)
	}
	return strings.Join(out, " ")
}

func ref(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func TestMake(t *testing.T) {
	t.Parallel()
	yes := true
	off := false
	for _, c := range []struct {
		name    string
		from    []corev1.EnvFromSource
		env     []corev1.EnvVar
		want    string
		wantErr string
	}{
		{name: "order and later definitions win",
			env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "$(A)$(C)"}, {Name: "C", Value: "3"}, {Name: "A", Value: "4"}}, want: "A=4 B=1$(C) C=3"},
		{name: "characters of several bytes",
			env: []corev1.EnvVar{{Name: "A", Value: "ü€"}, {Name: "B", Value: "→$(A)←$ä$$(A)$(Ω)$€"}}, want: "A=ü€ B=→ü€←$ä$(A)$(Ω)$€"},
		{name: "config map and prefix", from: []corev1.EnvFromSource{{Prefix: "P_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref("cm")}}}, want: "P_a=1 P_b=2"},
		{name: "optional", from: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("none"), Optional: &yes}}}},
		{name: "missing", from: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref("none")}}}, wantErr: `secrets "none" not found`},
		{name: "secret key", env: []corev1.EnvVar{{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: ref("s"), Key: "key"}}}}, want: "S=hidden"},
		{name: "missing key", env: []corev1.EnvVar{{Name: "S", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: ref("cm"), Key: "x"}}}},
			wantErr: "couldn't find key x in ConfigMap ns/cm"},
		{name: "fields", env: []corev1.EnvVar{
			{Name: "N", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			{Name: "L", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['app']"}}},
			{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}, want: "N=p L=web IP=10.42.0.9"},
		{name: "resources", env: []corev1.EnvVar{
			{Name: "M", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory", Divisor: resource.MustParse("1Mi")}}},
			{Name: "C", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "requests.cpu"}}}}, want: "M=64 C=1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"app": "web"}}}
			pod.Spec.EnableServiceLinks = &off
			pod.Spec.Containers = []corev1.Container{{Name: "c", EnvFrom: c.from, Env: c.env, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}}}}
			vars, err := env.Make(env.Request{Pod: pod, Container: &pod.Spec.Containers[0], Objects: objects{},
				Status: &corev1.PodStatus{PodIP: "10.42.0.9", PodIPs: []corev1.PodIP{{IP: "10.42.0.9"}}}})
			if fmt.Sprint(err) != c.wantErr && (err != nil || c.wantErr != "") {
				t.Fatalf("error %v, want %q", err, c.wantErr)
			}
			if got := render(vars); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestServiceVariables(t *testing.T) {
	t.Parallel()
	service := func(ns, name, ip string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{
			ClusterIP: ip, Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c"}}
	vars, err := env.Make(env.Request{Pod: pod, Container: &pod.Spec.Containers[0], Services: []*corev1.Service{
		service("ns", "my-web", "10.43.0.5"), service("ns", "headless", "None"), service("other", "web", "10.43.0.6"), service("default", "kubernetes", "10.43.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	got := render(vars)
	for _, want := range []string{"KUBERNETES_SERVICE_HOST=10.43.0.1", "MY_WEB_SERVICE_PORT_HTTP=80", "MY_WEB_PORT=tcp://10.43.0.5:80", "MY_WEB_PORT_80_TCP_ADDR=10.43.0.5"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "HEADLESS") || strings.Contains(got, "10.43.0.6") {
		t.Errorf("too much: %s", got)
	}
}
