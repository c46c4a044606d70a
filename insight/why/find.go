package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/insight"
)

// A kind that can be asked about.
type kind struct {
	name    string
	aliases []string
	cluster bool // it has no namespace
}

// kinds in the order in which a bare name is looked for: what stands in front of the
// others first.
var kinds = []kind{
	{"Ingress", []string{"ingress", "ingresses", "ing"}, false},
	{"Service", []string{"service", "services", "svc"}, false},
	{"HorizontalPodAutoscaler", []string{"horizontalpodautoscaler", "horizontalpodautoscalers", "hpa"}, false},
	{"Deployment", []string{"deployment", "deployments", "deploy"}, false},
	{"StatefulSet", []string{"statefulset", "statefulsets", "sts"}, false},
	{"DaemonSet", []string{"daemonset", "daemonsets", "ds"}, false},
	{"CronJob", []string{"cronjob", "cronjobs", "cj"}, false},
	{"Job", []string{"job", "jobs"}, false},
	{"ReplicaSet", []string{"replicaset", "replicasets", "rs"}, false},
	{"Pod", []string{"pod", "pods", "po"}, false},
	{"PersistentVolumeClaim", []string{"persistentvolumeclaim", "persistentvolumeclaims", "pvc"}, false},
	{"Node", []string{"node", "nodes", "no"}, true},
	{"PersistentVolume", []string{"persistentvolume", "persistentvolumes", "pv"}, true},
	{"Namespace", []string{"namespace", "namespaces", "ns"}, true},
}

// A Target is what is asked about.
type Target struct {
	kind *kind // nil: whatever has the name
	name string
}

// ParseTarget reads KIND/NAME, or NAME. The empty text means the whole namespace.
func ParseTarget(arg, namespace string) (Target, error) {
	if arg == "" {
		return Target{&kinds[len(kinds)-1], namespace}, nil
	}
	of, name, qualified := strings.Cut(arg, "/")
	if !qualified {
		return Target{nil, arg}, nil
	}
	if name == "" {
		return Target{}, fmt.Errorf("%q lacks the name after the slash", arg)
	}
	of, _, _ = strings.Cut(strings.ToLower(of), ".") // deployment.apps
	for i := range kinds {
		if slices.Contains(kinds[i].aliases, of) {
			return Target{&kinds[i], name}, nil
		}
	}
	var all []string
	for _, k := range kinds {
		all = append(all, k.aliases[0])
	}
	return Target{}, fmt.Errorf("kind %q is not known: must be one of %s", of, strings.Join(all, ", "))
}

// options say what must be read to answer.
func (t Target) options(namespace string) insight.Options {
	o := insight.Options{Namespace: namespace}
	if t.kind != nil && t.kind.cluster {
		o.About = &insight.Ref{Kind: t.kind.name, Name: t.name}
		o.Everything = t.kind.name == "Node"
		if t.kind.name == "Namespace" {
			o.Namespace = t.name
		}
	}
	return o
}

// Find finds the target; for a bare name all objects that are called so, the
// outermost first.
func (t Target) Find(s *insight.Snapshot, namespace string) ([]insight.Object, error) {
	var out []insight.Object
	for i := range kinds {
		k := &kinds[i]
		if t.kind != nil && t.kind != k || t.kind == nil && k.cluster && len(out) > 0 {
			continue
		}
		in := namespace
		if k.cluster {
			in = ""
		}
		if o, ok := s.Find(insight.Ref{Kind: k.name, Namespace: in, Name: t.name}); ok {
			out = append(out, o)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	if t.kind == nil {
		return nil, fmt.Errorf("nothing called %q in namespace %q%s", t.name, namespace, like(t.name, allNames(s, namespace)))
	}
	where := fmt.Sprintf(" in namespace %q", namespace)
	if t.kind.cluster {
		where = ""
	}
	return nil, fmt.Errorf("there is no %s %q%s", t.kind.name, t.name, where)
}

func allNames(s *insight.Snapshot, namespace string) []string {
	var out []string
	for _, o := range inNamespace(s, namespace) {
		out = append(out, o.GetName())
	}
	return out
}

// ErrLocalOnly is returned by Listens when a port accepts inside the pod, and refuses at
// the pod's address.
var ErrLocalOnly = errors.New("accepted on 127.0.0.1 in the pod, refused at its address")

// A Prober learns what no object says. It may be nil.
type Prober interface {
	// Listens connects to a port of a pod; nil if something accepts, or if it is not
	// known.
	Listens(ctx context.Context, pod *corev1.Pod, port int32) error
	// Resolves looks a DNS name up.
	Resolves(ctx context.Context, name string) error
}

// Load reads what is needed to explain a target, and finds it.
func Load(ctx context.Context, c kubernetes.Interface, p Prober, t Target, namespace string) (*insight.Snapshot, []insight.Object, error) {
	o := t.options(namespace)
	s, err := insight.FromCluster(ctx, c, o)
	if err != nil {
		return nil, nil, err
	}
	found, err := t.Find(s, namespace)
	if err != nil {
		return nil, nil, err
	}
	if !o.Everything && crowded(s, found) {
		// Whose pods fill the nodes? Those of other namespaces count too.
		o.Everything = true
		if s, err = insight.FromCluster(ctx, c, o); err != nil {
			return nil, nil, err
		}
		if found, err = t.Find(s, namespace); err != nil {
			return nil, nil, err
		}
	}
	learn(ctx, c, p, s, Reach(s, found...))
	return s, found, nil
}
