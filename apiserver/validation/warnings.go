package validation

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A warner collects what clients are told about objects that are valid but hardly
// what was meant. Paths are only built for what is reported: most objects are clean.
type warner struct{ list []string }

func (w *warner) say(at *field.Path, format string, args ...any) {
	w.list = append(w.list, at.String()+": "+fmt.Sprintf(format, args...))
}

// wholeBytes warns of amounts of bytes with fractions, as "100m" where "100M" was meant.
func (w *warner) wholeBytes(list corev1.ResourceList, names []corev1.ResourceName, at func() *field.Path) {
	for _, name := range names {
		if q, ok := list[name]; ok && q.MilliValue()%1000 != 0 {
			w.say(at().Key(string(name)), "fractional byte value %q is invalid, must be an integer", q.String())
		}
	}
}

var byteResources = []corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceEphemeralStorage}

// deprecatedLabels are labels of nodes that selectors should not use any more.
var deprecatedLabels = map[string]string{
	"beta.kubernetes.io/arch":                       `deprecated since v1.14; use "kubernetes.io/arch" instead`,
	"beta.kubernetes.io/os":                         `deprecated since v1.14; use "kubernetes.io/os" instead`,
	"failure-domain.beta.kubernetes.io/region":      `deprecated since v1.17; use "topology.kubernetes.io/region" instead`,
	"failure-domain.beta.kubernetes.io/zone":        `deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
	"beta.kubernetes.io/instance-type":              `deprecated since v1.17; use "node.kubernetes.io/instance-type" instead`,
	"app.kubernetes.io/created-by":                  "deprecated since v1.9",
	"scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
	"node-role.kubernetes.io/master":                `use "node-role.kubernetes.io/control-plane" instead`,
}

// NodeLabelWarning returns what is to be said of a label of nodes, "" if nothing.
func NodeLabelWarning(label string) string { return deprecatedLabels[label] }

// NodeSelectorTermWarnings are for the terms of node selectors. values says whether
// the values are looked at as well, which validation does not do for preferences.
func NodeSelectorTermWarnings(t *corev1.NodeSelectorTerm, values bool, at *field.Path) []string {
	var w warner
	for i := range t.MatchExpressions {
		r := &t.MatchExpressions[i]
		if text := deprecatedLabels[r.Key]; text != "" {
			w.say(at.Child("matchExpressions").Index(i).Child("key"), "%s is %s", r.Key, text)
		}
		if !values {
			continue
		}
		for j, v := range r.Values {
			for _, m := range validation.IsValidLabelValue(v) {
				w.say(at.Child("matchExpressions").Index(i).Child("values").Index(j), "%s is invalid, %s", v, m)
			}
		}
	}
	return w.list
}

// NodeLabelSelectorWarnings are for label selectors that choose nodes.
func NodeLabelSelectorWarnings(s *metav1.LabelSelector, at *field.Path) []string {
	if s == nil {
		return nil
	}
	var w warner
	for i, r := range s.MatchExpressions {
		if text := deprecatedLabels[r.Key]; text != "" {
			w.say(at.Child("matchExpressions").Index(i).Child("key"), "%s is %s", r.Key, text)
		}
	}
	for label := range s.MatchLabels {
		if text := deprecatedLabels[label]; text != "" {
			w.say(at.Child("matchLabels").Child(label), "%s", text)
		}
	}
	return w.list
}

// ClaimSpecWarnings are for the specs of claims and of templates of claims.
func ClaimSpecWarnings(spec *corev1.PersistentVolumeClaimSpec, at *field.Path) []string {
	var w warner
	storage := []corev1.ResourceName{corev1.ResourceStorage}
	w.wholeBytes(spec.Resources.Requests, storage, func() *field.Path { return at.Child("resources", "requests") })
	w.wholeBytes(spec.Resources.Limits, storage, func() *field.Path { return at.Child("resources", "limits") })
	return w.list
}

// FractionalStorage warns of an amount of storage that is no whole number of bytes.
func FractionalStorage(q resource.Quantity, at *field.Path) []string {
	var w warner
	if q.MilliValue()%1000 != 0 {
		w.say(at, "fractional byte value %q is invalid, must be an integer", q.String())
	}
	return w.list
}

// IPWarning warns of addresses that some programs read differently.
func IPWarning(at *field.Path, value string) []string {
	if value == "" {
		return nil
	}
	return validation.GetWarningsForIP(at, value)
}

// CIDRWarning is IPWarning for ranges.
func CIDRWarning(at *field.Path, value string) []string {
	return validation.GetWarningsForCIDR(at, value)
}

// A filePath is where a volume writes a file, and from what.
type filePath struct{ path, source string }

func (p filePath) String() string {
	if p.source == "" {
		return fmt.Sprintf("%q", p.path)
	}
	return fmt.Sprintf("%q (%s)", p.path, p.source)
}

// A layout is the files of one volume, to find those that hide others.
type layout struct {
	w      *warner
	volume string
	kind   string
	files  []filePath
}

func (l *layout) add(path, source string) {
	f := filePath{strings.TrimRight(path, "/"), source}
	if f.path != "" {
		for _, other := range l.files {
			if other.path == "" {
				continue
			}
			if strings.HasPrefix(other.path+"/", f.path+"/") || strings.HasPrefix(f.path+"/", other.path+"/") {
				l.w.list = append(l.w.list, fmt.Sprintf("volume %q (%s): overlapping paths: %s with %s", l.volume, l.kind, f, other))
			}
		}
	}
	l.files = append(l.files, f)
}

func (l *layout) keys(items []corev1.KeyToPath, source string) {
	for _, item := range items {
		l.add(item.Path, source)
	}
}

func (l *layout) downward(items []corev1.DownwardAPIVolumeFile, source string) {
	for _, item := range items {
		l.add(item.Path, source)
	}
}
