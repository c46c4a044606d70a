package env

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/periplus/periplus/volume"
)

// A Var is one variable.
type Var struct{ Name, Value string }

// Objects reads what variables refer to.
type Objects interface {
	ConfigMap(namespace, name string) (*corev1.ConfigMap, error)
	Secret(namespace, name string) (*corev1.Secret, error)
}

// A Request is one container whose environment is wanted.
type Request struct {
	Pod         *corev1.Pod
	Container   *corev1.Container
	Status      *corev1.PodStatus // for addresses
	Services    []*corev1.Service // of all namespaces
	Objects     Objects
	Allocatable corev1.ResourceList          // the node's, for limits that are not set
	Event       func(reason, message string) // warnings; may be nil
}

// Make returns the container's variables in the order of their definition,
// service variables last; a name occurs once. An error's text is what users see.
func Make(r Request) ([]Var, error) {
	m := &maker{r: r, index: map[string]int{}, services: map[string]string{}}
	links := r.Pod.Spec.EnableServiceLinks == nil || *r.Pod.Spec.EnableServiceLinks
	service := serviceVars(r.Services, r.Pod.Namespace, links)
	for _, v := range service {
		m.services[v.Name] = v.Value
	}
	for i := range r.Container.EnvFrom {
		if err := m.from(&r.Container.EnvFrom[i]); err != nil {
			return nil, err
		}
	}
	for i := range r.Container.Env {
		if err := m.one(&r.Container.Env[i]); err != nil {
			return nil, err
		}
	}
	for _, v := range service {
		if _, ok := m.index[v.Name]; !ok {
			m.set(v.Name, v.Value)
		}
	}
	return m.vars, nil
}

type maker struct {
	r        Request
	vars     []Var
	index    map[string]int // into vars
	services map[string]string
}

func (m *maker) set(name, value string) {
	if i, ok := m.index[name]; ok {
		m.vars[i].Value = value
		return
	}
	m.index[name] = len(m.vars)
	m.vars = append(m.vars, Var{name, value})
}

func (m *maker) lookup(name string) (string, bool) {
	if i, ok := m.index[name]; ok {
		return m.vars[i].Value, true
	}
	v, ok := m.services[name]
	return v, ok
}

// from adds all keys of a ConfigMap or Secret, sorted.
func (m *maker) from(f *corev1.EnvFromSource) error {
	var (
		data       = map[string]string{}
		kind, name string
	)
	switch ns := m.r.Pod.Namespace; {
	case f.ConfigMapRef != nil:
		kind, name = "configMap", f.ConfigMapRef.Name
		cm, err := m.r.Objects.ConfigMap(ns, name)
		if err != nil {
			if apierrors.IsNotFound(err) && isTrue(f.ConfigMapRef.Optional) {
				return nil
			}
			return err
		}
		data = cm.Data
	case f.SecretRef != nil:
		kind, name = "secret", f.SecretRef.Name
		s, err := m.r.Objects.Secret(ns, name)
		if err != nil {
			if apierrors.IsNotFound(err) && isTrue(f.SecretRef.Optional) {
				return nil
			}
			return err
		}
		for k, v := range s.Data {
			data[k] = string(v)
		}
	}
	var invalid []string
	for _, k := range sortedKeys(data) {
		key := f.Prefix + k
		if len(validation.IsRelaxedEnvVarName(key)) > 0 {
			invalid = append(invalid, key)
			continue
		}
		m.set(key, data[k])
	}
	if len(invalid) > 0 && m.r.Event != nil {
		m.r.Event("InvalidEnvironmentVariableNames", fmt.Sprintf(
			"Keys [%s] from the EnvFrom %s %s/%s were skipped since they are considered invalid environment variable names.",
			strings.Join(invalid, ", "), kind, m.r.Pod.Namespace, name))
	}
	return nil
}

func (m *maker) one(v *corev1.EnvVar) error {
	if v.Value != "" || v.ValueFrom == nil {
		m.set(v.Name, Expand(v.Value, m.lookup))
		return nil
	}
	switch s := v.ValueFrom; {
	case s.FieldRef != nil:
		value, err := volume.PodField(m.r.Pod, m.r.Status, s.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		m.set(v.Name, value)
	case s.ResourceFieldRef != nil:
		value, err := volume.ContainerResource(m.r.Pod, s.ResourceFieldRef, m.r.Container.Name, m.r.Allocatable)
		if err != nil {
			return err
		}
		m.set(v.Name, value)
	case s.ConfigMapKeyRef != nil:
		return m.configMapKey(v.Name, s.ConfigMapKeyRef)
	case s.SecretKeyRef != nil:
		return m.secretKey(v.Name, s.SecretKeyRef)
	}
	return nil
}

func (m *maker) configMapKey(name string, ref *corev1.ConfigMapKeySelector) error {
	ns, optional := m.r.Pod.Namespace, isTrue(ref.Optional)
	cm, err := m.r.Objects.ConfigMap(ns, ref.Name)
	if err != nil {
		if apierrors.IsNotFound(err) && optional {
			return nil
		}
		return err
	}
	value, ok := cm.Data[ref.Key]
	if !ok {
		if optional {
			return nil
		}
		return fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, ns, ref.Name)
	}
	m.set(name, value)
	return nil
}

func (m *maker) secretKey(name string, ref *corev1.SecretKeySelector) error {
	ns, optional := m.r.Pod.Namespace, isTrue(ref.Optional)
	s, err := m.r.Objects.Secret(ns, ref.Name)
	if err != nil {
		if apierrors.IsNotFound(err) && optional {
			return nil
		}
		return err
	}
	value, ok := s.Data[ref.Key]
	if !ok {
		if optional {
			return nil
		}
		return fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, ns, ref.Name)
	}
	m.set(name, string(value))
	return nil
}

func isTrue(b *bool) bool { return b != nil && *b }

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
