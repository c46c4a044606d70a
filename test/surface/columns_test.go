package surface_test

import (
	"strings"
	"testing"

	"github.com/periplus/periplus/apiserver/printers"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/all"
)

// openEnded are kinds to whose columns upstream adds more elsewhere in its source.
var openEnded = map[string]bool{"CSIDriver": true, "CSIStorageCapacity": true}

// TestColumns wants the columns that upstream's kinds have, wide ones included.
func TestColumns(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for _, line := range lines(t, "columns.txt") {
		kind, columns, _ := strings.Cut(line, " ")
		want[kind] = columns
	}
	tables := printers.Tables()
	for _, r := range all.Resources(registry.Env{}) {
		if want[r.Kind] == "" {
			continue
		}
		table := tables[r.GVR]
		if table == nil {
			t.Errorf("%s has no columns, want %s", r.GVR, want[r.Kind])
			continue
		}
		var out []string
		for _, c := range table.Columns {
			s := strings.ReplaceAll(c.Name, " ", "_") + ":" + c.Type
			if c.Priority == 1 {
				s += ":wide"
			}
			out = append(out, s)
		}
		got := strings.Join(out, " ")
		if got != want[r.Kind] && (!openEnded[r.Kind] || !strings.HasPrefix(got, want[r.Kind])) {
			t.Errorf("%s\n got %s\nwant %s", r.Kind, got, want[r.Kind])
		}
	}
}
