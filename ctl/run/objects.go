package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// An object is what will be made, with the name of its kind as it is printed:
// "deployment.apps".
type object struct {
	runtime.Object
	kind string
}

func (o object) meta() metav1.Object { return o.Object.(metav1.Object) }

// objects returns what the flags ask for: the workload first, then its Service.
func (w *wanted) objects(namespace string) ([]object, error) {
	workload := w.workload(namespace)
	if w.overrides != "" {
		var err error
		if workload.Object, err = override(workload.Object, w.overrides); err != nil {
			return nil, err
		}
	}
	out := []object{workload}
	if w.expose {
		out = append(out, w.service(namespace))
	}
	return out, nil
}

// selector picks the pods, by one label. The user may give it another value.
func (w *wanted) selector() map[string]string {
	key := "app"
	if w.restart != string(corev1.RestartPolicyAlways) {
		key = "run"
	}
	if own, ok := w.labels[key]; ok {
		return map[string]string{key: own}
	}
	return map[string]string{key: w.name}
}

func (w *wanted) meta(namespace string) metav1.ObjectMeta {
	labels := w.selector()
	maps.Copy(labels, w.labels)
	return metav1.ObjectMeta{Name: w.name, Namespace: namespace, Labels: labels}
}

func (w *wanted) pod() corev1.PodSpec {
	c := corev1.Container{
		Name: w.name, Image: w.image, Env: w.env, Resources: w.resources, ImagePullPolicy: corev1.PullPolicy(w.pull),
		Stdin: w.stdin, StdinOnce: w.stdin, TTY: w.tty,
	}
	if w.command {
		c.Command = w.args
	} else {
		c.Args = w.args
	}
	if w.port != 0 {
		c.Ports = []corev1.ContainerPort{{ContainerPort: w.port}}
	}
	return corev1.PodSpec{Containers: []corev1.Container{c}, RestartPolicy: corev1.RestartPolicy(w.restart), ServiceAccountName: w.account}
}

func (w *wanted) workload(namespace string) object {
	meta := w.meta(namespace)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: w.pod()}
	switch corev1.RestartPolicy(w.restart) {
	case corev1.RestartPolicyNever:
		pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: meta, Spec: template.Spec}
		return object{pod, "pod"}
	case corev1.RestartPolicyOnFailure:
		job := &batchv1.Job{TypeMeta: metav1.TypeMeta{Kind: "Job", APIVersion: "batch/v1"}, ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}}
		return object{job, "job.batch"}
	}
	deployment := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: &w.replicas, Selector: &metav1.LabelSelector{MatchLabels: w.selector()}, Template: template},
	}
	return object{deployment, "deployment.apps"}
}

func (w *wanted) service(namespace string) object {
	return object{&corev1.Service{
		TypeMeta: metav1.TypeMeta{Kind: "Service", APIVersion: "v1"}, ObjectMeta: w.meta(namespace),
		Spec: corev1.ServiceSpec{
			Selector: w.selector(),
			Ports:    []corev1.ServicePort{{Port: w.port, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(w.port)}},
		},
	}, "service"}
}

// overrides returns the JSON that the flag gives, or that a file does: "@web.yaml".
func overrides(flag string) (string, error) {
	path, isFile := strings.CutPrefix(flag, "@")
	if !isFile {
		return flag, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("--overrides: %w", err)
	}
	if data, err = yaml.YAMLToJSONStrict(data); err != nil {
		return "", fmt.Errorf("--overrides: %s is neither YAML nor JSON: %w", path, err)
	}
	return string(data), nil
}

// override merges JSON given by the user into an object.
func override(obj runtime.Object, flag string) (runtime.Object, error) {
	before, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	patch, err := overrides(flag)
	if err != nil {
		return nil, err
	}
	if !json.Valid([]byte(patch)) {
		return nil, fmt.Errorf("--overrides: %q is not valid JSON", patch)
	}
	after, err := strategicpatch.StrategicMergePatch(before, []byte(patch), obj)
	if err != nil {
		return nil, fmt.Errorf("--overrides: %w", err)
	}
	out := obj.DeepCopyObject()
	switch o := out.(type) {
	case *appsv1.Deployment:
		*o = appsv1.Deployment{}
	case *batchv1.Job:
		*o = batchv1.Job{}
	case *corev1.Pod:
		*o = corev1.Pod{}
	}
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	unknown, err := kjson.UnmarshalStrict(after, out)
	if err != nil {
		return nil, fmt.Errorf("--overrides: the result is not a %s: %w", kind, err)
	}
	if err := errors.Join(unknown...); err != nil {
		return nil, fmt.Errorf("--overrides: the result is not a %s: %w", kind, err)
	}
	return out, nil
}
