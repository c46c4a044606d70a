package kinds

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// consts are the values of string types, by type name.
var consts = sync.OnceValue(func() map[string][]string {
	out := map[string][]string{}
	re := regexp.MustCompile(`(?m)^\s*\w+\s+(\w+)\s*=\s*"([^"]*)"`)
	re2 := regexp.MustCompile(`(?m)^\s*\w+\s*=\s*(\w+)\("([^"]*)"\)`)
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		panic(err)
	}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*", "*", "types.go"))
	for _, f := range files {
		data, _ := os.ReadFile(f)
		for _, m := range append(re.FindAllStringSubmatch(string(data), -1), re2.FindAllStringSubmatch(string(data), -1)...) {
			out[m[1]] = append(out[m[1]], m[2])
		}
	}
	return out
})

var (
	tQuantity = reflect.TypeOf(resource.Quantity{})
	tIntStr   = reflect.TypeOf(intstr.IntOrString{})
	tTime     = reflect.TypeOf(metav1.Time{})
	tMicro    = reflect.TypeOf(metav1.MicroTime{})
	tDuration = reflect.TypeOf(metav1.Duration{})
	tRaw      = reflect.TypeOf(runtime.RawExtension{})
	tFields   = reflect.TypeOf(metav1.FieldsV1{})
)

var generalStrings = []any{"", "a", "x-y", "A_b", "-bad-", "example.com/name", "sub.domain.io", "with space", "UPPER", strings.Repeat("z", 64), strings.Repeat("y", 300)}

var byName = []struct {
	part string
	pool []any
}{
	{"ip", []any{"10.0.0.1", "fd00::1", "127.0.0.1", "169.254.1.1", "0.0.0.0", "010.1.1.1", "224.0.0.1", "nope", "::ffff:1.2.3.4", ""}},
	{"cidr", []any{"10.0.0.0/8", "10.0.0.1/8", "fd00::/64", "bad", "", "1.2.3.4", "010.0.0.0/8", "fd00:0::/64"}},
	{"address", []any{"10.0.0.1", "fd00::1", "host.example.com", "127.0.0.1", ""}},
	{"path", []any{"/a", "a/b", "../x", "/x/../y", "", "/", "a/../b", "..data", "c:\\x", "a:b", "//x", "/x/."}},
	{"name", []any{"a", "", "A_b", "a.b", "x/y", "kube-root-ca.crt", "-z", "1a", strings.Repeat("n", 64), strings.Repeat("n", 254)}},
	{"key", []any{"a", "", "a b", "example.com/k", "kubernetes.io/hostname", "k8s.io/x", ".x", "..", "a/b/c"}},
	{"url", []any{"https://x.io/p", "http://x", "://", "", "https://u:p@x/", "https://x?a=b", "https://x#f"}},
	{"apiversion", []any{"v1", "a/b/c", "", "apps/v1"}},
	{"apigroup", []any{"", "rbac.authorization.k8s.io", "apps", "a_b", "snapshot.storage.k8s.io"}},
	{"kind", []any{"Pod", "", "User", "Group", "ServiceAccount", "Role", "ClusterRole", "PersistentVolumeClaim", "x/y"}},
	{"host", []any{"a.example.com", "*.example.com", "*", "10.0.0.1", "A.b", "", "*.a.*.b", "-x"}},
	{"expression", []any{"true", "object.x == 1", "(", "", "1", "request.userInfo.username == 'a'"}},
	{"image", []any{"busybox", "", " x ", "a:b"}},
	{"mode", []any{}},
	{"zone", []any{"Europe/Rome", "Nowhere/City", "", "Local", "TZ=UTC", "UTC"}},
	{"schedule", []any{"* * * * *", "TZ=UTC 0 0 * * *", "bad", "", "@daily", "61 * * * *", "CRON_TZ=UTC * * * * *", "0 0 31 2 *"}},
	{"driver", []any{"d.example.com", "D.Example.com", "bad_driver!", "", strings.Repeat("d", 64)}},
	{"user", []any{"a", "ContainerAdministrator", "", "a:b", "x\\y", "a\x00b"}},
	{"handler", []any{"runc", "", "A", "a.b"}},
	{"fieldpath", []any{"metadata.name", "metadata.labels['a']", "spec.nodeName", "status.podIP", "nope", ""}},
	{"resource", []any{"limits.cpu", "requests.memory", "cpu", "pods", "*", "*/*", "pods/log", "", "example.com/gpu", "hugepages-2Mi", "requests.hugepages-2Mi"}},
	{"label", []any{"a", "example.com/b", "bad key!", ""}},
	{"selector", []any{"a", ""}},
	{"uid", []any{"uid", "", "x"}},
	{"signername", []any{"example.com/s", "kubernetes.io/kube-apiserver-client", "bad", "", "kubernetes.io/legacy-unknown", "a/b/c"}},
	{"verbs", []any{"get", "*", "", "GET"}},
}

func pool(t reflect.Type, name string) []any {
	var out []any
	if c := consts()[t.Name()]; t.Name() != "string" && len(c) > 0 {
		for _, v := range c {
			out = append(out, v)
		}
		out = append(out, "", "Nope")
		if len(c) > 3 || t.Name() == "ResourceName" {
			return out
		}
		return out
	}
	low := strings.ToLower(name)
	for _, b := range byName {
		if strings.Contains(low, b.part) {
			out = append(out, b.pool...)
		}
	}
	if len(out) > 0 {
		return append(out, "with space", "x", strings.Repeat("y", 300))
	}
	return generalStrings
}

var mapKeys = []string{"a", "cpu", "memory", "example.com/x", "bad key!", "", "storage", "hugepages-2Mi", "pods", "requests.cpu", "ephemeral-storage", "kubernetes.io/x", "unprefixed.thing", "app", "limits.memory", "count/pods", "requests.storage", "gold.storageclass.storage.k8s.io/requests.storage", "services.nodeports", "node.kubernetes.io/x", "requests.example.com/x", "attachable-volumes-x"}

// candidates returns edge values of a type, as JSON values.
func candidates(t reflect.Type, name string, r *rand.Rand) []any {
	switch t {
	case tQuantity:
		return []any{"0", "1", "-1", "100m", "1Gi", "0.5", "1500m", "3", "10", "1e3", "1n"}
	case tIntStr:
		return []any{0, 1, -1, 70000, "10%", "150%", "http", "x_y", "-5%", "", "0%", "100%"}
	case tTime:
		return []any{"2020-01-02T03:04:05Z", nil}
	case tMicro:
		return []any{"2020-01-02T03:04:05.000000Z", nil}
	case tDuration:
		return []any{"0s", "5m", "-1s", "1ms", "30s"}
	case tRaw:
		return []any{map[string]any{"a": 1}, map[string]any{}, nil, []any{1}, "x"}
	case tFields:
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return append(candidates(t.Elem(), name, r), nil)
	case reflect.String:
		return pool(t, name)
	case reflect.Bool:
		return []any{true, false}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		out := []any{0, 1, -1, 2, 30, 100, 101, 511, 777, 1000, 65535, 65536, 2000000000}
		if t.Kind() == reflect.Int64 {
			out = append(out, int64(1)<<33)
		}
		return out
	case reflect.Struct:
		out := []any{map[string]any{}}
		for range 5 {
			out = append(out, gen(t, name, r, 3))
		}
		return out
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return []any{"", "YWJj", "e30="}
		}
		out := []any{[]any{}}
		el := candidates(t.Elem(), name, r)
		for _, c := range el {
			out = append(out, []any{c})
		}
		if len(el) > 1 {
			out = append(out, []any{el[1], el[1]}, []any{el[0], el[1]})
		}
		return out
	case reflect.Map:
		out := []any{map[string]any{}}
		vs := candidates(t.Elem(), name, r)
		for i, k := range mapKeys {
			out = append(out, map[string]any{k: vs[(i+1)%len(vs)]})
		}
		for _, v := range vs {
			out = append(out, map[string]any{"cpu": v}, map[string]any{"a": v})
		}
		return out
	}
	return nil
}

func jsonName(f reflect.StructField) (string, bool) {
	tag := f.Tag.Get("json")
	name, rest, _ := strings.Cut(tag, ",")
	if name == "-" {
		return "", false
	}
	inline := strings.Contains(rest, "inline") || (f.Anonymous && name == "")
	return name, inline
}

// fieldsOf lists json fields with inlined ones.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var out []reflect.StructField
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		name, inline := jsonName(f)
		if inline {
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if ft.Name() == "TypeMeta" || ft.Kind() != reflect.Struct {
				continue
			}
			out = append(out, fieldsOf(ft)...)
			continue
		}
		if name == "" || name == "managedFields" || name == "selfLink" {
			continue
		}
		out = append(out, f)
	}
	return out
}

// gen makes a random value.
func gen(t reflect.Type, name string, r *rand.Rand, depth int) any {
	switch t {
	case tQuantity, tIntStr, tTime, tMicro, tRaw, tDuration:
		c := candidates(t, name, r)
		return c[r.Intn(len(c))]
	case tFields:
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return gen(t.Elem(), name, r, depth)
	case reflect.Struct:
		out := map[string]any{}
		if depth <= 0 {
			return out
		}
		fs := fieldsOf(t)
		p := 0.5
		if len(fs) > 8 {
			p = 3.0 / float64(len(fs))
		}
		for _, f := range fs {
			n, _ := jsonName(f)
			pp := p
			if !strings.Contains(f.Tag.Get("json"), "omitempty") {
				pp = 0.9
			}
			if r.Float64() < pp {
				out[n] = gen(f.Type, n, r, depth-1)
			}
		}
		return out
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "YWJj"
		}
		if depth <= 0 {
			return []any{}
		}
		n := 1 + r.Intn(2)
		var out []any
		for range n {
			out = append(out, gen(t.Elem(), name, r, depth))
		}
		return out
	case reflect.Map:
		out := map[string]any{}
		for range r.Intn(3) {
			out[mapKeys[r.Intn(len(mapKeys))]] = gen(t.Elem(), name, r, depth-1)
		}
		return out
	}
	c := candidates(t, name, r)
	if len(c) == 0 {
		return nil
	}
	// prefer the first values, that tend to be good
	if r.Intn(2) == 0 {
		return c[r.Intn(min(len(c), 3))]
	}
	return c[r.Intn(len(c))]
}

// a place is a settable location in a JSON tree.
type place struct {
	path string
	name string
	typ  reflect.Type
	set  func(v any)
	del  func()
	has  bool
	get  func() any
}

func places(t reflect.Type, v any, path, name string, out *[]place) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t {
	case tQuantity, tIntStr, tTime, tMicro, tRaw, tFields, tDuration:
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		for _, f := range fieldsOf(t) {
			n, _ := jsonName(f)
			if path == "" && (n == "kind" || n == "apiVersion") {
				continue
			}
			cur, has := m[n]
			*out = append(*out, place{path: path + "." + n, name: n, typ: f.Type, has: has,
				set: func(v any) { m[n] = v }, del: func() { delete(m, n) }, get: func() any { return m[n] }})
			if has {
				places(f.Type, cur, path+"."+n, n, out)
			}
		}
	case reflect.Slice:
		l, ok := v.([]any)
		if !ok || t.Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range l {
			*out = append(*out, place{path: fmt.Sprintf("%s[%d]", path, i), name: name, typ: t.Elem(), has: true,
				set: func(v any) { l[i] = v }, del: nil, get: func() any { return l[i] }})
			places(t.Elem(), l[i], fmt.Sprintf("%s[%d]", path, i), name, out)
		}
	case reflect.Map:
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			*out = append(*out, place{path: path + "[" + k + "]", name: k, typ: t.Elem(), has: true,
				set: func(v any) { m[k] = v }, del: func() { delete(m, k) }, get: func() any { return m[k] }})
			places(t.Elem(), m[k], path+"["+k+"]", name, out)
		}
	}
}

func tree(raw []byte) map[string]any {
	var m map[string]any
	json.Unmarshal(raw, &m)
	return m
}

// fixed are places that generic code looks after.
func fixed(path string, naming bool) bool {
	switch {
	case path == ".metadata.name":
		return !naming
	case path == ".metadata.annotations", strings.HasPrefix(path, ".metadata.annotations["):
		return false
	}
	return path == ".metadata" || strings.HasPrefix(path, ".metadata.")
}

// mutate calls run with base in which every place in turn has edge values, and then
// with random changes of several places. Only what is below under and metadata is
// changed, the name if naming.
func mutate(t reflect.Type, base []byte, seed int64, random int, under string, naming bool, run func(what string, raw []byte)) {
	r := rand.New(rand.NewSource(seed))
	share := 1.0 // of the changes of one place that are tried
	emit := func(what string, m map[string]any) {
		if share < 1 && r.Float64() > share {
			return
		}
		raw, err := json.Marshal(m)
		if err == nil {
			run(what, raw)
		}
	}
	list := func(m map[string]any) []place {
		var ps []place
		places(t, m, "", "", &ps)
		out := ps[:0]
		for _, p := range ps {
			if !fixed(p.path, naming) && (under == "" || strings.HasPrefix(p.path, "."+under) || strings.HasPrefix(p.path, ".metadata")) {
				out = append(out, p)
			}
		}
		return out
	}
	count := len(list(tree(base)))
	share = float64(*limit) / float64(12*count+1)
	for i := 0; i < count; i++ {
		m := tree(base)
		p := list(m)[i]
		if p.has && p.del != nil {
			p.del()
			emit("del "+p.path, m)
		}
		if p.has {
			if l, ok := p.get().([]any); ok && len(l) > 0 {
				m = tree(base)
				p = list(m)[i]
				l = p.get().([]any)
				p.set(append(l, l[0]))
				emit("dup "+p.path, m)
				m = tree(base)
				p = list(m)[i]
				p.set(append(p.get().([]any), gen(p.typ, p.name, r, 3).([]any)...))
				emit("app "+p.path, m)
			}
		}
		cs := candidates(p.typ, p.name, r)
		for _, c := range cs {
			m := tree(base)
			list(m)[i].set(c)
			js, _ := json.Marshal(c)
			emit("set "+p.path+"="+string(js), m)
		}
	}
	share = 1
	for range random {
		m := tree(base)
		var what []string
		for range 1 + r.Intn(3) {
			ps := list(m)
			p := ps[r.Intn(len(ps))]
			switch {
			case p.has && p.del != nil && r.Intn(6) == 0:
				p.del()
				what = append(what, "del "+p.path)
			default:
				v := gen(p.typ, p.name, r, 4)
				p.set(v)
				js, _ := json.Marshal(v)
				what = append(what, "set "+p.path+"="+string(js))
			}
		}
		emit(strings.Join(what, "; "), m)
	}
}
