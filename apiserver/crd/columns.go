package crd

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/periplus/periplus/apiserver/registry"
)

// age is the column of versions that declare none.
var age = []apiextensionsv1.CustomResourceColumnDefinition{{
	Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
}}

// table prints the columns that a version declares. A column whose path cannot be
// read is left out: validation of the definition has refused it.
func (v *version) table() *registry.Table {
	columns := v.spec.AdditionalPrinterColumns
	if len(columns) == 0 {
		columns = age
	}
	t := &registry.Table{Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
	}}
	var cells []cell
	for _, c := range columns {
		path := jsonpath.New(c.Name)
		if err := path.Parse("{" + c.JSONPath + "}"); err != nil {
			continue
		}
		path.AllowMissingKeys(true)
		text := c.Description
		if text == "" {
			text = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		t.Columns = append(t.Columns, metav1.TableColumnDefinition{Name: c.Name, Type: c.Type, Format: c.Format, Description: text, Priority: c.Priority})
		cells = append(cells, cell{path, c.Type})
	}
	t.Rows = func(object runtime.Object) [][]any {
		obj := object.(*Object)
		row := make([]any, 0, len(cells)+1)
		row = append(row, obj.Name)
		all := obj.UnstructuredContent()
		for _, c := range cells {
			row = append(row, c.value(all))
		}
		return [][]any{row}
	}
	return t
}

// A cell finds the value of one column.
type cell struct {
	path *jsonpath.JSONPath
	kind string
}

func (c cell) value(all map[string]any) any {
	results, err := c.path.FindResults(all)
	if err != nil || len(results) == 0 || len(results[0]) == 0 {
		return nil
	}
	value := results[0][0].Interface()
	switch c.kind {
	case "string":
		var out bytes.Buffer
		if c.path.PrintResults(&out, []reflect.Value{reflect.ValueOf(value)}) != nil {
			return nil
		}
		return out.String()
	case "integer":
		switch n := value.(type) {
		case int64:
			return n
		case float64:
			return int64(n)
		}
	case "number":
		switch n := value.(type) {
		case int64:
			return float64(n)
		case float64:
			return n
		}
	case "boolean":
		if b, ok := value.(bool); ok {
			return b
		}
	case "date":
		if text, ok := value.(string); ok {
			var t metav1.Time
			if t.UnmarshalQueryParameter(text) != nil {
				return "<invalid>"
			}
			return metatable.ConvertToHumanReadableDateType(t)
		}
	}
	return nil
}

// selectable returns the names of the fields that a version can be selected by,
// and what reads them; nil if there are none.
func (v *version) selectable() ([]string, func(runtime.Object) fields.Set) {
	var names []string
	var paths []*jsonpath.JSONPath
	for _, f := range v.spec.SelectableFields {
		path := jsonpath.New("selectableField")
		path.AllowMissingKeys(true)
		if path.Parse("{"+f.JSONPath+"}") != nil {
			continue
		}
		names = append(names, strings.TrimPrefix(f.JSONPath, "."))
		paths = append(paths, path)
	}
	if names == nil {
		return nil, nil
	}
	return names, func(object runtime.Object) fields.Set {
		out, content := fields.Set{}, object.(*Object).Content
		for i, path := range paths {
			out[names[i]] = ""
			results, err := path.FindResults(content)
			if err == nil && len(results) == 1 && len(results[0]) == 1 && results[0][0].Interface() != nil {
				out[names[i]] = fmt.Sprint(results[0][0].Interface())
			}
		}
		return out
	}
}
