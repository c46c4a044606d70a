package printers

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// What stands in cells without a value.
const (
	none    = "<none>"
	unset   = "<unset>"
	unknown = "<unknown>"
)

// since is how long ago t was: "5m", or "<unknown>".
func since(t metav1.Time) string { return ago(t.Time) }

func ago(t time.Time) string {
	if t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(time.Since(t))
}

// old is the age of an object.
func old(obj metav1.Object) string { return since(obj.GetCreationTimestamp()) }

// or is s, or what stands for nothing.
func or[S ~string](s S, nothing string) string {
	if s == "" {
		return nothing
	}
	return string(s)
}

// orNil is *s, or what stands for nothing.
func orNil[S ~string](s *S, nothing string) string {
	if s == nil {
		return nothing
	}
	return string(*s)
}

func deref[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// quantity prints a copy: String keeps its result in the value.
func quantity(q *resource.Quantity) string {
	if q == nil {
		return resource.NewQuantity(0, resource.DecimalSI).String()
	}
	c := *q
	return c.String()
}

// some joins at most limit values and says how many more there are; nothing is
// what stands for an empty list.
func some(values []string, limit int, separator, nothing string) string {
	if len(values) == 0 {
		return nothing
	}
	if len(values) > limit {
		return fmt.Sprintf("%s + %d more...", strings.Join(values[:limit], separator), len(values)-limit)
	}
	return strings.Join(values, separator)
}

// containers returns the names and the images of containers.
func containers(list []corev1.Container) (names, images string) {
	var n, i []string
	for k := range list {
		n, i = append(n, list[k].Name), append(i, list[k].Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// containerColumns are the wide columns of kinds with a pod template.
func containerColumns() columns {
	return columns{
		wide(text("Containers", "Names of the containers in the template.")),
		wide(text("Images", "Images of the containers in the template.")),
	}
}

// withContainers adds the cells of containerColumns.
func withContainers(cells []any, template *corev1.PodSpec) []any {
	var list []corev1.Container
	if template != nil {
		list = template.Containers
	}
	names, images := containers(list)
	return append(cells, names, images)
}
