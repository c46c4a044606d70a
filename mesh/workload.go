package mesh

import (
	"regexp"
	"strings"
)

// A Workload is a proxy's application as metrics name it.
type Workload struct {
	// Name is that of what made the pod: a Deployment's.
	Name      string
	Namespace string
	// App and Version are the pod's labels.
	App     string
	Version string
	// CanonicalName and CanonicalRevision are the service as people see it.
	CanonicalName     string
	CanonicalRevision string
	Cluster           string
}

// ClusterID is the name of this cluster in metrics.
const ClusterID = "Kubernetes"

// WorkloadOf describes a pod by the name of what made it and by its labels.
func WorkloadOf(name, namespace string, labels map[string]string) Workload {
	w := Workload{Name: name, Namespace: namespace, Cluster: ClusterID}
	w.App = first(labels["app"], labels["app.kubernetes.io/name"])
	w.Version = first(labels["version"], labels["app.kubernetes.io/version"])
	w.CanonicalName = first(labels[LabelCanonicalName], labels["app.kubernetes.io/name"], labels["app"], name)
	w.CanonicalRevision = first(labels[LabelCanonicalRevision], labels["app.kubernetes.io/version"], labels["version"], "latest")
	return w
}

// Short is the workload in an endpoint's metadata: name;namespace;canonical
// name;canonical revision;cluster, as Istio writes it, then app and version.
func (w Workload) Short() string {
	return strings.Join([]string{w.Name, w.Namespace, w.CanonicalName, w.CanonicalRevision, w.Cluster, w.App, w.Version}, ";")
}

// ParseShort reads Short, also Istio's own, which lacks the last two.
func ParseShort(s string) Workload {
	p := append(strings.Split(s, ";"), make([]string, 7)...)
	return Workload{Name: p[0], Namespace: p[1], CanonicalName: p[2], CanonicalRevision: p[3], Cluster: p[4], App: p[5], Version: p[6]}
}

// replicaSetName is a Deployment's name with the hash of its template.
var replicaSetName = regexp.MustCompile(`^(.+)-[bcdf2456789vwxz]{1,10}$`)

// OwnerName is the name of a workload from its pod's controller: a ReplicaSet's
// name without the hash, other controllers' as it is, the pod's own without one.
func OwnerName(kind, owner, pod string) string {
	switch {
	case owner == "":
		return pod
	case kind == "ReplicaSet":
		if m := replicaSetName.FindStringSubmatch(owner); m != nil {
			return m[1]
		}
	}
	return owner
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
