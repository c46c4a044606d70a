package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Fields of a pod that the downward API offers, as environment and as files.
var (
	envFields = []string{"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName",
		"spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
	volumeFields = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"}
	podFields    = []string{"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
		"metadata.uid", "spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "spec.schedulerName",
		"status.phase", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"}
	containerFields = []string{"limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory"}
	byteDivisors = []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
)

func environment(e *errorList, vars []corev1.EnvVar, at *field.Path) {
	for i := range vars {
		v, p := &vars[i], at.Index(i)
		if v.Name == "" {
			e.required(p.Child("name"), "")
		} else {
			invalidChild(e, p, "name", v.Name, validation.IsRelaxedEnvVarName(v.Name))
		}
		if v.ValueFrom != nil {
			valueFrom(e, v, p.Child("valueFrom"))
		}
	}
}

func valueFrom(e *errorList, v *corev1.EnvVar, at *field.Path) {
	from, sources := v.ValueFrom, 0
	if from.FieldRef != nil {
		sources++
		objectField(e, from.FieldRef, envFields, at.Child("fieldRef"))
	}
	if from.ResourceFieldRef != nil {
		sources++
		resourceField(e, from.ResourceFieldRef, at.Child("resourceFieldRef"), false)
	}
	if from.ConfigMapKeyRef != nil {
		sources++
		keyRef(e, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, at.Child("configMapKeyRef"))
	}
	if from.SecretKeyRef != nil {
		sources++
		keyRef(e, from.SecretKeyRef.Name, from.SecretKeyRef.Key, at.Child("secretKeyRef"))
	}
	if from.FileKeyRef != nil {
		sources++
		fileKeyRef(e, from.FileKeyRef, at.Child("fileKeyRef"))
	}
	switch {
	case sources == 0:
		e.invalid(at, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
	case v.Value != "":
		e.invalid(at, "", "may not be specified when `value` is not empty")
	case sources > 1:
		e.invalid(at, "", "may not have more than one field specified at a time")
	}
}

func keyRef(e *errorList, name, key string, at *field.Path) {
	invalidChild(e, at, "name", name, apivalidation.NameIsDNSSubdomain(name, false))
	if key == "" {
		e.required(at.Child("key"), "")
		return
	}
	invalidChild(e, at, "key", key, validation.IsConfigMapKey(key))
}

func fileKeyRef(e *errorList, ref *corev1.FileKeySelector, at *field.Path) {
	if ref.Key == "" {
		e.required(at.Child("key"), "")
	} else {
		invalidChild(e, at, "key", ref.Key, validation.IsRelaxedEnvVarName(ref.Key))
	}
	if ref.VolumeName == "" {
		e.required(at.Child("volumeName"), "")
	} else {
		e.add(DNSLabel(ref.VolumeName, at.Child("volumeName"))...)
	}
	if ref.Path == "" {
		e.required(at.Child("path"), "")
	} else {
		e.add(noBacksteps(ref.Path, at.Child("path"))...)
	}
}

func environmentFrom(e *errorList, sources []corev1.EnvFromSource, at *field.Path) {
	for i := range sources {
		s, p := &sources[i], at.Index(i)
		if s.Prefix != "" {
			invalidChild(e, p, "prefix", s.Prefix, validation.IsRelaxedEnvVarName(s.Prefix))
		}
		n := 0
		check := func(name, child string) {
			n++
			if name == "" {
				e.required(p.Child(child, "name"), "")
				return
			}
			e.invalidAll(p.Child(child, "name"), name, apivalidation.NameIsDNSSubdomain(name, true))
		}
		if s.ConfigMapRef != nil {
			check(s.ConfigMapRef.Name, "configMapRef")
		}
		if s.SecretRef != nil {
			check(s.SecretRef.Name, "secretRef")
		}
		switch {
		case n == 0:
			e.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`")
		case n > 1:
			e.invalid(at, "", "may not have more than one field specified at a time")
		}
	}
}

// objectField checks a reference to a field of the pod, with an optional
// subscript as in metadata.labels['app'].
func objectField(e *errorList, ref *corev1.ObjectFieldSelector, allowed []string, at *field.Path) {
	if ref.APIVersion == "" {
		e.required(at.Child("apiVersion"), "")
		return
	}
	if ref.FieldPath == "" {
		e.required(at.Child("fieldPath"), "")
		return
	}
	unknown := func(format string, args ...any) {
		e.invalid(at.Child("fieldPath"), ref.FieldPath, "error converting fieldPath: "+fmt.Sprintf(format, args...))
	}
	path, subscript, subscripted := SplitSubscript(ref.FieldPath)
	known := path == "metadata.annotations" || path == "metadata.labels"
	switch {
	case ref.APIVersion != "v1":
		unknown("unsupported pod version: %s", ref.APIVersion)
	case subscripted && !known:
		unknown("field label does not support subscript: %s", ref.FieldPath)
	case subscripted && path == "metadata.annotations":
		e.add(QualifiedName(strings.ToLower(subscript), at)...)
	case subscripted:
		e.add(QualifiedName(subscript, at)...)
	case path == "spec.host": // the name of spec.nodeName in very old manifests
		if !slices.Contains(allowed, "spec.nodeName") {
			e.add(field.NotSupported(at.Child("fieldPath"), "spec.nodeName", allowed))
		}
	case !slices.Contains(podFields, path):
		unknown("field label not supported: %s", ref.FieldPath)
	case !slices.Contains(allowed, path):
		e.add(field.NotSupported(at.Child("fieldPath"), path, allowed))
	}
}

// SplitSubscript splits metadata.labels['key'] into the path and the key.
func SplitSubscript(fieldPath string) (path, subscript string, ok bool) {
	rest, ok := strings.CutSuffix(fieldPath, "']")
	if !ok {
		return fieldPath, "", false
	}
	path, subscript, ok = strings.Cut(rest, "['")
	if !ok || path == "" {
		return fieldPath, "", false
	}
	return path, subscript, true
}

// resourceField checks a reference to a container's requests or limits; files
// must name the container.
func resourceField(e *errorList, ref *corev1.ResourceFieldSelector, at *field.Path, file bool) {
	huge := strings.HasPrefix(ref.Resource, "requests.hugepages-") || strings.HasPrefix(ref.Resource, "limits.hugepages-")
	switch {
	case file && ref.ContainerName == "":
		e.required(at.Child("containerName"), "")
	case ref.Resource == "":
		e.required(at.Child("resource"), "")
	case !slices.Contains(containerFields, ref.Resource) && !huge:
		e.add(field.NotSupported(at.Child("resource"), ref.Resource, containerFields))
	}
	if ref.Divisor.IsZero() {
		return
	}
	const bytesError = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the %s resource"
	divisor, kind := ref.Divisor.String(), ""
	switch {
	case strings.HasSuffix(ref.Resource, ".cpu"):
		if divisor != "1m" && divisor != "1" {
			e.invalid(at.Child("divisor"), ref.Resource, "only divisor's values 1m and 1 are supported with the cpu resource")
		}
		return
	case strings.HasSuffix(ref.Resource, ".memory"):
		kind = "memory"
	case strings.HasSuffix(ref.Resource, ".ephemeral-storage"):
		kind = "local ephemeral storage"
	case huge:
		kind = "hugepages"
	default:
		return
	}
	if !slices.Contains(byteDivisors, divisor) {
		e.invalid(at.Child("divisor"), ref.Resource, fmt.Sprintf(bytesError, kind))
	}
}
