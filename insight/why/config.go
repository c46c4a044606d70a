package why

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// configRules: what a pod's spec refers to is not there.
func configRules() []Rule {
	return []Rule{
		on("configmap-missing", "a ConfigMap that the pod needs does not exist", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			return references(s, p, "ConfigMap", false)
		}),
		on("secret-missing", "a Secret that the pod needs does not exist", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			return references(s, p, "Secret", false)
		}),
		on("configmap-key-missing", "a ConfigMap lacks a key that the pod needs", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			return references(s, p, "ConfigMap", true)
		}),
		on("secret-key-missing", "a Secret lacks a key that the pod needs", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			return references(s, p, "Secret", true)
		}),
		on("claim-missing", "a PersistentVolumeClaim that the pod mounts does not exist", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			var out []insight.Finding
			for _, v := range p.Spec.Volumes {
				if v.PersistentVolumeClaim == nil || ended(p) || !insight.Missing[*corev1.PersistentVolumeClaim](s, p.Namespace, v.PersistentVolumeClaim.ClaimName) {
					continue
				}
				name := v.PersistentVolumeClaim.ClaimName
				out = append(out, insight.Finding{
					Part: "volume " + v.Name, What: fmt.Sprintf("there is no PersistentVolumeClaim %q in namespace %s%s", name, p.Namespace, like(name, names[*corev1.PersistentVolumeClaim](s, p.Namespace))),
					Evidence: append([]string{fmt.Sprintf("spec: volume %s uses claim %s", v.Name, name)}, conditionLine(p, corev1.PodScheduled)...),
					Mend:     []insight.Mend{insight.Do("makes the claim", fmt.Sprintf("peri kubectl -n %s create -f - <<'EOF'\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: %s}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\nEOF", p.Namespace, name))},
				})
			}
			return out
		}),
		on("service-account-missing", "the pod's service account does not exist", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			name := p.Spec.ServiceAccountName
			if name == "" || ended(p) || !insight.Missing[*corev1.ServiceAccount](s, p.Namespace, name) {
				return nil
			}
			return []insight.Finding{{
				What:     fmt.Sprintf("there is no service account %q in namespace %s", name, p.Namespace),
				Evidence: []string{"spec: serviceAccountName is " + name},
				Mend:     []insight.Mend{makeAccount(p.Namespace, name)},
			}}
		}),
	}
}

func makeAccount(namespace, name string) insight.Mend {
	return insight.Mend{
		Command: insight.Kubectl(namespace, "create serviceaccount %s", name), Note: "makes it, without any rights",
		Change: &insight.Change{Verb: "create", Version: "v1", Resource: "serviceaccounts", Namespace: namespace, Name: name,
			Body: fmt.Sprintf(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":%q}}`, name)},
	}
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// A use is one reference to a ConfigMap or Secret.
type use struct {
	kind, name, key string // no key: all of it
	part, where     string
}

// uses are all references of a pod that are not optional.
func uses(p *corev1.Pod) []use {
	var out []use
	add := func(kind, name, key, part, where string, optional *bool) {
		if name != "" && (optional == nil || !*optional) {
			out = append(out, use{kind, name, key, part, where})
		}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		part := "container " + c.Name
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				continue
			}
			if r := e.ValueFrom.ConfigMapKeyRef; r != nil {
				add("ConfigMap", r.Name, r.Key, part, "environment variable "+e.Name, r.Optional)
			}
			if r := e.ValueFrom.SecretKeyRef; r != nil {
				add("Secret", r.Name, r.Key, part, "environment variable "+e.Name, r.Optional)
			}
		}
		for _, e := range c.EnvFrom {
			if r := e.ConfigMapRef; r != nil {
				add("ConfigMap", r.Name, "", part, "envFrom", r.Optional)
			}
			if r := e.SecretRef; r != nil {
				add("Secret", r.Name, "", part, "envFrom", r.Optional)
			}
		}
	}
	items := func(kind, name, part string, keys []corev1.KeyToPath, optional *bool) {
		add(kind, name, "", part, part, optional)
		for _, k := range keys {
			add(kind, name, k.Key, part, part, optional)
		}
	}
	for _, v := range p.Spec.Volumes {
		part := "volume " + v.Name
		if r := v.ConfigMap; r != nil {
			items("ConfigMap", r.Name, part, r.Items, r.Optional)
		}
		if r := v.Secret; r != nil {
			items("Secret", r.SecretName, part, r.Items, r.Optional)
		}
		if v.Projected == nil {
			continue
		}
		for _, src := range v.Projected.Sources {
			if r := src.ConfigMap; r != nil {
				items("ConfigMap", r.Name, part, r.Items, r.Optional)
			}
			if r := src.Secret; r != nil {
				items("Secret", r.Name, part, r.Items, r.Optional)
			}
		}
	}
	return out
}

// references finds uses of a kind whose object, or whose key, is missing.
func references(s *insight.Snapshot, p *corev1.Pod, kind string, keys bool) []insight.Finding {
	if ended(p) || conditions.PodReady(p) {
		return nil
	}
	var out []insight.Finding
	for _, u := range uses(p) {
		if u.kind != kind || (u.key == "") && keys {
			continue
		}
		there, known, all := lookup(s, p.Namespace, u)
		if !known {
			continue
		}
		f := insight.Finding{Part: u.part, Evidence: slices.Concat([]string{fmt.Sprintf("spec: %s of pod %s uses %s", u.where, p.Name, u)}, mountLine(s, p, u), configLine(s, p, u))}
		switch {
		case !keys && !there:
			f.What = fmt.Sprintf("there is no %s %q in namespace %s%s", kind, u.name, p.Namespace, like(u.name, all))
			f.Mend = []insight.Mend{insight.Do("makes it", insight.Kubectl(p.Namespace, "create %s %s --from-literal=KEY=VALUE", makeVerb(kind), u.name))}
			if key := u.key; key != "" {
				f.Mend[0].Command = strings.Replace(f.Mend[0].Command, "KEY", key, 1)
			}
		case keys && there && !slices.Contains(all, u.key):
			f.What = fmt.Sprintf("%s %q has no key %q%s", kind, u.name, u.key, has(all))
			f.Mend = []insight.Mend{insight.Do("adds the key", insight.Kubectl(p.Namespace, `patch %s %s -p '{"%s":{"%s":"VALUE"}}'`, strings.ToLower(kind), u.name, dataField(kind), u.key))}
		default:
			continue
		}
		if !slices.ContainsFunc(out, func(o insight.Finding) bool { return o.What == f.What }) {
			out = append(out, f)
		}
	}
	return out
}

func (u use) String() string {
	if u.key == "" {
		return u.kind + " " + u.name
	}
	return "key " + u.key + " of " + u.kind + " " + u.name
}

func makeVerb(kind string) string {
	if kind == "Secret" {
		return "secret generic"
	}
	return "configmap"
}

func dataField(kind string) string {
	if kind == "Secret" {
		return "stringData"
	}
	return "data"
}

// lookup finds what a use refers to. all are the keys of the object, or the names
// that there are instead.
func lookup(s *insight.Snapshot, namespace string, u use) (there, known bool, all []string) {
	if u.kind == "ConfigMap" {
		m, ok := insight.Get[*corev1.ConfigMap](s, namespace, u.name)
		if !ok {
			return false, insight.Read[*corev1.ConfigMap](s), names[*corev1.ConfigMap](s, namespace)
		}
		return true, true, slices.Concat(sorted(m.Data), sorted(m.BinaryData))
	}
	m, ok := insight.Get[*corev1.Secret](s, namespace, u.name)
	if !ok {
		return false, insight.Read[*corev1.Secret](s), names[*corev1.Secret](s, namespace)
	}
	return true, true, sorted(m.Data)
}

func mountLine(s *insight.Snapshot, p *corev1.Pod, u use) []string {
	if e := s.LastEvent(p, "FailedMount"); e != nil && strings.HasPrefix(u.part, "volume ") && strings.Contains(e.Message, u.name) {
		return []string{s.EventLine(e)}
	}
	return nil
}

func configLine(s *insight.Snapshot, p *corev1.Pod, u use) []string {
	for _, c := range containersOf(s, p) {
		if reason, _ := c.waiting(); reason == "CreateContainerConfigError" && c.part() == u.part {
			return []string{c.waitLine()}
		}
	}
	return nil
}

func conditionLine(p *corev1.Pod, t corev1.PodConditionType) []string {
	c := conditions.Pod(&p.Status, t)
	if c == nil || c.Status == corev1.ConditionTrue {
		return nil
	}
	return []string{fmt.Sprintf("status: condition %s is %s: %s", t, c.Status, c.Message)}
}
