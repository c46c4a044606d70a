package deployment

import (
	"math"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/journey"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"

	historyLength = 2000 // characters kept of earlier revisions
)

// own lists the annotations that a Deployment does not hand on to its sets.
var own = map[string]bool{
	corev1.LastAppliedConfigAnnotation: true,
	revisionAnnotation:                 true,
	historyAnnotation:                  true,
	desiredAnnotation:                  true,
	maxAnnotation:                      true,
	appsv1.DeprecatedRollbackTo:        true,
	journey.Annotation:                 true,
}

// annotate brings the newest set's annotations up to date and says whether that
// changed any. exists is false for a set that is about to be created.
func annotate(d *appsv1.Deployment, rs *appsv1.ReplicaSet, revision string, exists bool) bool {
	changed := false
	set := func(k, v string) {
		if rs.Annotations == nil {
			rs.Annotations = map[string]string{}
		}
		if old, ok := rs.Annotations[k]; !ok || old != v {
			rs.Annotations[k] = v
			changed = true
		}
	}
	for k, v := range d.Annotations {
		if !own[k] {
			set(k, v)
		}
	}
	old := rs.Annotations[revisionAnnotation]
	if parseRevision(old) < parseRevision(revision) {
		set(revisionAnnotation, revision)
		if old != "" {
			// The set served before: this is a rollback. Its earlier numbers are kept.
			set(historyAnnotation, appendHistory(rs.Annotations[historyAnnotation], old))
		}
	}
	if !exists && annotateSizes(rs, declared(d), declared(d)+maxSurge(d)) {
		changed = true
	}
	return changed
}

// appendHistory adds a revision to a comma-separated list, dropping the oldest
// ones when it gets too long.
func appendHistory(history, revision string) string {
	if history == "" {
		return revision
	}
	list := strings.Split(history, ",")
	length := len(history) + 1 + len(revision)
	for length > historyLength && len(list) > 0 {
		length -= len(list[0]) + 1
		list = list[1:]
	}
	return strings.Join(append(list, revision), ",")
}

// annotateSizes remembers the declared number and the most pods allowed with it.
func annotateSizes(rs *appsv1.ReplicaSet, desired, most int32) bool {
	d, m := strconv.Itoa(int(desired)), strconv.Itoa(int(most))
	if rs.Annotations[desiredAnnotation] == d && rs.Annotations[maxAnnotation] == m {
		return false
	}
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	rs.Annotations[desiredAnnotation], rs.Annotations[maxAnnotation] = d, m
	return true
}

func setRevision(d *appsv1.Deployment, revision string) {
	if revision == "" || d.Annotations[revisionAnnotation] == revision {
		return
	}
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[revisionAnnotation] = revision
}

func revisionOf(o metav1.Object) int64 { return parseRevision(o.GetAnnotations()[revisionAnnotation]) }

func parseRevision(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func maxRevision(sets []*appsv1.ReplicaSet) int64 {
	most := int64(0)
	for _, rs := range sets {
		most = max(most, revisionOf(rs))
	}
	return most
}

func intAnnotation(o metav1.Object, name string) (int32, bool) {
	n, err := strconv.ParseInt(o.GetAnnotations()[name], 10, 32)
	return int32(n), err == nil
}

func hasDeadline(d *appsv1.Deployment) bool {
	return d.Spec.ProgressDeadlineSeconds != nil && *d.Spec.ProgressDeadlineSeconds != math.MaxInt32
}
