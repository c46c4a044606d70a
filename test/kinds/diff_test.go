package kinds

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/capabilities"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/registry"
)

var (
	only   = flag.String("kind", "", "kinds to compare, comma separated; all by default")
	limit  = flag.Int("limit", 3000, "objects per base and verb in which one field is changed, about; large kinds have more")
	random = flag.Int("random", 200, "objects per base and verb in which several fields are changed")
	seed   = flag.Int64("seed", 1, "of the random changes")
	most   = flag.Int("most", 40, "differences that are shown of a kind")
)

// TestKinds compares every kind with upstream's.
func TestKinds(t *testing.T) {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	all := resources()
	for _, k := range kinds() {
		if *only != "" && !slices.Contains(strings.Split(*only, ","), k.kind) {
			continue
		}
		t.Run(k.kind, func(t *testing.T) {
			r := all[k.gvr]
			if r == nil {
				t.Fatalf("%v is not served", k.gvr)
			}
			found := differences{}
			for i, base := range bases(t, k.kind) {
				k.compareBase(t, r, found, i, base)
			}
			list := slices.SortedFunc(maps.Values(found), func(a, b *difference) int { return cmp.Or(b.count-a.count, cmp.Compare(a.what, b.what)) })
			for i, d := range list {
				if i == *most {
					t.Errorf("and %d more", len(list)-i)
					break
				}
				t.Errorf("%d times: %.300s\n          %s", d.count, d.what, d.first)
			}
		})
	}
}

// bases reads the good objects of a kind.
func bases(t *testing.T, kind string) (out [][]byte) {
	data, err := os.ReadFile(filepath.Join("bases", kind+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != "null" {
			out = append(out, raw)
		}
	}
	return out
}

func (k *kind) compareBase(t *testing.T, r *registry.Resource, found differences, i int, base []byte) {
	typ := reflect.TypeOf(r.New()).Elem()
	create := &write{kind: k.kind, verb: "create", object: base}
	stored := k.upstream(k.main, create)
	found.compare(create, fmt.Sprintf("base %d", i), stored, k.ours(r, r.Strategy, create))
	mutate(typ, base, *seed, *random, "", true, func(what string, raw []byte) {
		w := &write{kind: k.kind, verb: "create", object: raw}
		found.compare(w, fmt.Sprintf("base %d %s", i, what), k.upstream(k.main, w), k.ours(r, r.Strategy, w))
	})
	if stored.undecoded {
		t.Errorf("base %d is no %s", i, k.kind)
	}
	if stored.undecoded || len(stored.errs) > 0 {
		return // there are a few that are refused
	}
	old := withStatus(base, stored.stored)
	update := func(subresource string, theirs rest.RESTUpdateStrategy, under string) {
		s := strategy(r, subresource)
		if s == nil {
			t.Errorf("there is no %s", subresource)
			return
		}
		mutate(typ, old, *seed+1, *random, under, false, func(what string, raw []byte) {
			w := &write{kind: k.kind, verb: "update", subresource: subresource, old: old, object: raw}
			found.compare(w, fmt.Sprintf("base %d %s", i, what), k.upstream(theirs, w), k.ours(r, s, w))
		})
	}
	update("", k.main, "")
	if k.status != nil {
		update("status", k.status, "status")
	}
	for _, view := range slices.Sorted(maps.Keys(k.views)) {
		under := ""
		if view == "resize" { // what else is changed with it is told of in another order
			under = "spec.containers"
		}
		update(view, k.views[view], under)
	}
}

// withStatus is a stored object with the status of base, which create dropped.
func withStatus(base, stored []byte) []byte {
	var b, s map[string]any
	_ = json.Unmarshal(base, &b)
	_ = json.Unmarshal(stored, &s)
	if status, ok := b["status"]; ok {
		s["status"] = status
	}
	m := s["metadata"].(map[string]any)
	m["resourceVersion"], m["generation"] = "7", 3
	out, _ := json.Marshal(s)
	return out
}
