package rest

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/registry"
)

// plainTable prints kinds without columns of their own.
var plainTable = &registry.Table{
	Columns: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]},
		{Name: "Created At", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]},
	},
	Rows: func(obj runtime.Object) [][]any {
		meta := metaOf(obj)
		return [][]any{{meta.Name, meta.CreationTimestamp.UTC().Format(time.RFC3339)}}
	},
}

// table prints a page (meta.k8s.io/v1 Table). Rows carry their object's
// metadata, the whole object or nothing, as includeObject asks.
func (e *endpoint) table(c *call, p *page, columns bool) (*metav1.Table, error) {
	printer := e.view.Table
	if printer == nil {
		printer = plainTable
	}
	t := &metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: c.format.asGV.String(), Kind: "Table"},
		ListMeta: p.meta(),
		Rows:     make([]metav1.TableRow, 0, len(p.items)),
	}
	if columns {
		t.ColumnDefinitions = printer.Columns
	}
	for _, obj := range p.items {
		raw, err := e.rowObject(c, obj)
		if err != nil {
			return nil, err
		}
		for _, cells := range printer.Rows(obj.Obj) {
			t.Rows = append(t.Rows, metav1.TableRow{Cells: cells, Object: raw})
		}
	}
	return t, nil
}

func (e *endpoint) rowObject(c *call, obj *cacher.Object) (runtime.RawExtension, error) {
	switch c.includeObject {
	case metav1.IncludeNone:
		return runtime.RawExtension{}, nil
	case metav1.IncludeObject:
		raw, err := e.encodeItem(mediaJSON, obj, false)
		return runtime.RawExtension{Raw: raw}, err
	default:
		raw, err := json.Marshal(partial(c.format, obj))
		return runtime.RawExtension{Raw: raw}, err
	}
}
