package manifests

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// A document is one object of a file.
type document struct {
	number int // from 1
	object *unstructured.Unstructured
}

// read takes a file apart, in the order in which its objects are to be made. What
// can be read is returned even when other documents cannot.
func read(data []byte) ([]document, error) {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	var out []document
	var errs []error
	for n := 0; ; {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(append(errs, err)...)
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(doc, &content); err != nil {
			n++
			errs = append(errs, fmt.Errorf("document %d: %w", n, err))
			continue
		}
		if len(content) == 0 {
			continue // comments only
		}
		n++
		u := &unstructured.Unstructured{Object: content}
		if !u.IsList() {
			out, errs = add(out, errs, n, u)
			continue
		}
		err = u.EachListItem(func(item runtime.Object) error {
			out, errs = add(out, errs, n, item.(*unstructured.Unstructured))
			return nil
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("document %d: %w", n, err))
		}
	}
	slices.SortStableFunc(out, func(a, b document) int { return rank(a.object.GetKind()) - rank(b.object.GetKind()) })
	return out, errors.Join(errs...)
}

func add(out []document, errs []error, n int, u *unstructured.Unstructured) ([]document, []error) {
	for _, field := range []struct{ name, value string }{{"apiVersion", u.GetAPIVersion()}, {"kind", u.GetKind()}, {"metadata.name", u.GetName()}} {
		if field.value == "" {
			return out, append(errs, fmt.Errorf("document %d: %s is missing", n, field.name))
		}
	}
	return append(out, document{n, u}), errs
}

// ranks are kinds that others need, and kinds that would stand in the way of others.
var ranks = map[string]int{
	"Namespace": -4, "CustomResourceDefinition": -3, "StorageClass": -2, "PriorityClass": -2, "RuntimeClass": -2, "IngressClass": -2,
	"ServiceAccount": -1, "Secret": -1, "ConfigMap": -1, "Role": -1, "ClusterRole": -1, "RoleBinding": -1, "ClusterRoleBinding": -1,
	"ResourceQuota": -1, "LimitRange": -1, "MutatingWebhookConfiguration": 1, "ValidatingWebhookConfiguration": 1,
}

func rank(kind string) int { return ranks[kind] }
