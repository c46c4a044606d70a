package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

var (
	// passing are times of this run and names made by chance.
	passing = regexp.MustCompile(`"202[5-9]-[0-9T:.\-]*Z"|"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"`)
	// values that are whole objects read differently: upstream prints its internal types.
	object = regexp.MustCompile(`(?s)^((?:Invalid|Duplicate) value: )(?:[{\[].*: |[{\[].*$)`)
	// after these words upstream goes on with a comparison of what changed.
	changed = []string{"updates may not modify a condition", "updates may not change", "immutable after creation", "may not be changed"}

	index  = regexp.MustCompile(`\[[^\]]*\]`)
	quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)
	number = regexp.MustCompile(`-?\b\d[\w.]*\b`)
)

// plain is a message without what cannot be the same.
func plain(message string) string {
	for _, words := range changed {
		if at := strings.IndexByte(message, '\n'); at > 0 && strings.Contains(message, words) {
			message = message[:at]
		}
	}
	return object.ReplaceAllString(message, "$1")
}

// A difference is one thing that the two do not do alike.
type difference struct {
	what  string // without names and numbers: those that say the same are one
	count int
	first string
}

// differences are the differences of a kind by what they are.
type differences map[string]*difference

func (d differences) note(w *write, sort, line, mutation string) {
	if tolerated(w.kind, w, line) {
		return
	}
	what := w.verb + w.subresource + " " + sort + " " + number.ReplaceAllString(quoted.ReplaceAllString(index.ReplaceAllString(line, "[]"), `""`), "#")
	if d[what] == nil {
		d[what] = &difference{what: what, first: fmt.Sprintf("%.500s\n          %.500s", mutation, line)}
	}
	d[what].count++
}

// compare notes how two outcomes of a write differ.
func (d differences) compare(w *write, mutation string, upstream, ours outcome) {
	if upstream.undecoded || upstream.panicked {
		return
	}
	if ours.undecoded {
		d.note(w, "does not decode", "", mutation)
		return
	}
	d.lists(w, mutation, "error", upstream.errs, slices.DeleteFunc(ours.errs, func(line string) bool {
		return inMetadata(line) && len(upstream.errs) > 0 && !slices.ContainsFunc(upstream.errs, inMetadata)
	}))
	if len(upstream.errs) > 0 || len(ours.errs) > 0 {
		return
	}
	d.lists(w, mutation, "warning", upstream.warnings, ours.warnings)
	left, right := passing.ReplaceAll(upstream.stored, []byte(`"…"`)), passing.ReplaceAll(ours.stored, []byte(`"…"`))
	if bytes.Equal(left, right) {
		return
	}
	var one, two any
	_ = json.Unmarshal(left, &one)
	_ = json.Unmarshal(right, &two)
	walk("", one, two, func(path string, a, b any) {
		left, _ := json.Marshal(a)
		right, _ := json.Marshal(b)
		d.note(w, "stored", fmt.Sprintf("%s upstream %.60s, ours %.60s", path, left, right), mutation)
	})
}

// inMetadata reports an error in metadata. Upstream checks that of some kinds when
// there is nothing else to say.
func inMetadata(line string) bool { return strings.Contains(line, " metadata.") }

func (d differences) lists(w *write, mutation, sort string, upstream, ours []string) {
	for _, line := range upstream {
		if !slices.Contains(ours, line) {
			d.note(w, sort+" missing:", line, mutation)
		}
	}
	for _, line := range ours {
		if !slices.Contains(upstream, line) {
			d.note(w, sort+" not upstream's:", line, mutation)
		}
	}
}

// walk calls differ for what differs in two JSON values.
func walk(path string, a, b any, differ func(path string, a, b any)) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			differ(path, a, b)
			return
		}
		for key, v := range x {
			walk(path+"."+key, v, y[key], differ)
		}
		for key, v := range y {
			if _, both := x[key]; !both {
				differ(path+"."+key, nil, v)
			}
		}
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			differ(path, a, b)
			return
		}
		for i := range x {
			walk(path+"[]", x[i], y[i], differ)
		}
	default:
		if !reflect.DeepEqual(a, b) {
			differ(path, a, b)
		}
	}
}

// allowed are differences that the comparison itself makes, or that upstream's own
// strategies leave to the code around them.
var allowed = []struct{ kind, verb, part string }{
	// Upstream fills cluster IPs and families of an update in its storage layer.
	{"Service", "", "spec.clusterIP"}, {"Service", "", "spec.ipFamil"}, {"Service", "", "spec.healthCheckNodePort"},
	{"Service", "update", "spec.ports: Required"}, {"Service", "update", "nodePort: Duplicate"}, {"Service", "update", "nodePort upstream null"},
	// Upstream looks at the volumes of claim templates in the order of a map.
	{"StatefulSet", "", "spec.template.spec.volumes["},
	// The names in which upstream counts are those of a volume's last type.
	{"", "", "Total length of <volume name>"},
	// Upstream's generated rules look into both arms of a union that has too many, and
	// into constraints that have two attributes.
	{"ResourceClaimTemplate", "", ".spec.devices.requests["}, {"ResourceClaimTemplate", "", ".spec.devices.constraints["},
	{"ResourceClaim", "", "spec.devices.requests["}, {"ResourceClaim", "", "spec.devices.constraints["},
	// Inline volumes have the defaults of PersistentVolumes there.
	{"VolumeAttachment", "", "azureDisk.diskURI"},
	// The name is missing: the code around the strategy refuses it.
	{"", "create", "name or generateName is required"},
}

func tolerated(kind string, w *write, line string) bool {
	return slices.ContainsFunc(allowed, func(a struct{ kind, verb, part string }) bool {
		return (a.kind == "" || a.kind == kind) && (a.verb == "" || a.verb == w.verb) && strings.Contains(line, a.part)
	})
}
