package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/periplus/periplus/insight"
)

const defaultIngressClass = "ingressclass.kubernetes.io/is-default-class"

// A rule's backend, with where it is named.
type ingressBackend struct {
	host, path string
	backend    networkingv1.IngressBackend
}

// backends are all backends of an Ingress.
func backends(i *networkingv1.Ingress) []ingressBackend {
	var out []ingressBackend
	if i.Spec.DefaultBackend != nil {
		out = append(out, ingressBackend{"", "the default backend", *i.Spec.DefaultBackend})
	}
	for _, r := range i.Spec.Rules {
		if r.HTTP == nil {
			continue
		}
		for _, p := range r.HTTP.Paths {
			out = append(out, ingressBackend{r.Host, cmp.Or(p.Path, "/"), p.Backend})
		}
	}
	return out
}

func (b ingressBackend) part() string { return "rule " + cmp.Or(b.host, "*") + " " + b.path }

// ingressRules: a request from outside does not arrive.
func ingressRules() []Rule {
	return []Rule{
		on("ingress-service-missing", "the Service of a rule does not exist", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			var out []insight.Finding
			for _, b := range backends(i) {
				if svc := b.backend.Service; svc != nil && insight.Missing[*corev1.Service](s, i.Namespace, svc.Name) {
					out = append(out, insight.Finding{Part: b.part(), What: fmt.Sprintf("there is no Service %q in namespace %s%s", svc.Name, i.Namespace, like(svc.Name, names[*corev1.Service](s, i.Namespace))),
						Why: elsewhere(s, svc.Name, i.Namespace), Evidence: []string{fmt.Sprintf("spec: %s leads to Service %s", b.part(), svc.Name)}, Mend: editIngress(i, "names a Service that exists")})
				}
			}
			return out
		}),
		on("ingress-port-missing", "the Service of a rule has no such port", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			var out []insight.Finding
			for _, b := range backends(i) {
				if b.backend.Service == nil {
					continue
				}
				svc, ok := insight.Get[*corev1.Service](s, i.Namespace, b.backend.Service.Name)
				want := b.backend.Service.Port
				if !ok || slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
					return want.Name != "" && p.Name == want.Name || want.Name == "" && p.Port == want.Number
				}) {
					continue
				}
				var have []string
				for _, p := range svc.Spec.Ports {
					text := itoa(int(p.Port))
					if p.Name != "" {
						text += " (" + p.Name + ")"
					}
					have = append(have, text)
				}
				out = append(out, insight.Finding{Part: b.part(), What: fmt.Sprintf("Service %q has no port %s%s", svc.Name, cmp.Or(want.Name, itoa(int(want.Number))), has(have)), Why: "An Ingress names the Service's port, not the container's.",
					Evidence: []string{fmt.Sprintf("spec: %s leads to port %s", b.part(), cmp.Or(want.Name, itoa(int(want.Number))))}, Mend: otherBackendPort(i, b, svc)})
			}
			return out
		}),
		on("ingress-secret-missing", "the TLS Secret does not exist", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			var out []insight.Finding
			for _, t := range i.Spec.TLS {
				if t.SecretName != "" && insight.Missing[*corev1.Secret](s, i.Namespace, t.SecretName) {
					out = append(out, insight.Finding{Part: "TLS " + strings.Join(t.Hosts, ","), What: fmt.Sprintf("there is no Secret %q in namespace %s with the certificate of %s%s", t.SecretName, i.Namespace, strings.Join(orNone(t.Hosts), ", "), like(t.SecretName, names[*corev1.Secret](s, i.Namespace))),
						Evidence: []string{"spec: tls names Secret " + t.SecretName}, Mend: []insight.Mend{insight.Do("makes it", insight.Kubectl(i.Namespace, "create secret tls %s --cert=CERT.pem --key=KEY.pem", t.SecretName))}})
				}
			}
			return out
		}),
		on("ingress-secret-invalid", "the TLS Secret holds no certificate", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			var out []insight.Finding
			for _, t := range i.Spec.TLS {
				secret, ok := insight.Get[*corev1.Secret](s, i.Namespace, t.SecretName)
				if !ok || len(secret.Data[corev1.TLSCertKey]) > 0 && len(secret.Data[corev1.TLSPrivateKeyKey]) > 0 {
					continue
				}
				out = append(out, insight.Finding{Part: "TLS " + strings.Join(t.Hosts, ","), What: fmt.Sprintf("Secret %q lacks tls.crt or tls.key%s", secret.Name, has(sorted(secret.Data))), Evidence: []string{"type: " + string(secret.Type)},
					Mend: []insight.Mend{insight.Do("makes it anew", insight.Kubectl(i.Namespace, "delete secret %s && %s", secret.Name, insight.Kubectl(i.Namespace, "create secret tls %s --cert=CERT.pem --key=KEY.pem", secret.Name)))}})
			}
			return out
		}),
		on("ingress-class-missing", "the Ingress names a class that does not exist", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			class := ingressClass(i)
			if class == "" || i.Spec.IngressClassName == nil || !insight.Missing[*networkingv1.IngressClass](s, "", class) {
				return nil
			}
			all := names[*networkingv1.IngressClass](s, "")
			return one(&insight.Finding{Part: "class", What: fmt.Sprintf("there is no IngressClass %q: nobody serves this Ingress%s", class, like(class, all)), Evidence: []string{"classes: " + strings.Join(orNone(all), ", ")}, Mend: onlyClass(i, all)})
		}),
		on("ingress-no-class", "the Ingress names no class and none is the default", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			if ingressClass(i) != "" || !insight.Read[*networkingv1.IngressClass](s) || slices.ContainsFunc(insight.All[*networkingv1.IngressClass](s, ""), func(c *networkingv1.IngressClass) bool { return c.Annotations[defaultIngressClass] == "true" }) {
				return nil
			}
			all := names[*networkingv1.IngressClass](s, "")
			return one(&insight.Finding{Part: "class", What: "the Ingress names no class, and none is the default: nobody serves it", Evidence: []string{"classes: " + strings.Join(orNone(all), ", ")}, Mend: onlyClass(i, all)})
		}),
		on("ingress-host-conflict", "another Ingress has the same host and path", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			var out []insight.Finding
			for _, b := range backends(i) {
				for _, other := range insight.All[*networkingv1.Ingress](s, "") {
					if other.Name == i.Name && other.Namespace == i.Namespace || ingressClass(other) != ingressClass(i) || b.path == "the default backend" {
						continue
					}
					for _, ob := range backends(other) {
						if ob.host != b.host || ob.path != b.path {
							continue
						}
						f := insight.Finding{Part: b.part(), What: fmt.Sprintf("Ingress %s/%s has the same host and path: %s %s", other.Namespace, other.Name, cmp.Or(b.host, "*"), b.path), Why: "The older one gets the requests.",
							Evidence: []string{fmt.Sprintf("age: this one %s, the other one %s", s.Age(i.CreationTimestamp.Time), s.Age(other.CreationTimestamp.Time))}, Mend: editIngress(i, "takes another host or path")}
						if i.CreationTimestamp.Time.Before(other.CreationTimestamp.Time) {
							f.Level = insight.Note
						}
						out = append(out, f)
					}
				}
			}
			return out
		}),
		on("ingress-no-rules", "the Ingress leads nowhere", func(_ *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			if len(backends(i)) > 0 {
				return nil
			}
			return one(&insight.Finding{Part: "rules", What: "the Ingress has neither a rule with a path nor a default backend: every request gets 404", Mend: editIngress(i, "adds one")})
		}),
		on("ingress-no-address", "no controller has taken the Ingress", func(s *insight.Snapshot, i *networkingv1.Ingress) []insight.Finding {
			if len(i.Status.LoadBalancer.Ingress) > 0 || s.Now.Sub(i.CreationTimestamp.Time) < patience {
				return nil
			}
			f := &insight.Finding{Level: insight.Note, Part: "address", What: "the Ingress has no address: its controller has not said where it is served"}
			if c, ok := insight.Get[*networkingv1.IngressClass](s, "", ingressClass(i)); ok {
				f.Evidence = []string{fmt.Sprintf("class %s is served by %s", c.Name, c.Spec.Controller)}
			}
			return one(f)
		}),
	}
}

func ingressClass(i *networkingv1.Ingress) string {
	if i.Spec.IngressClassName != nil {
		return *i.Spec.IngressClassName
	}
	return i.Annotations["kubernetes.io/ingress.class"]
}

func editIngress(i *networkingv1.Ingress, note string) []insight.Mend {
	return []insight.Mend{insight.Do(note, insight.Kubectl(i.Namespace, "edit ingress %s", i.Name))}
}

// onlyClass sets the class, if there is only one to choose.
func onlyClass(i *networkingv1.Ingress, all []string) []insight.Mend {
	if len(all) == 1 {
		return []insight.Mend{insight.Patched("networking.k8s.io", "v1", "ingresses", insight.RefOf(i), fmt.Sprintf(`{"spec":{"ingressClassName":%q}}`, all[0]), "names the only class")}
	}
	return editIngress(i, "sets ingressClassName")
}

func elsewhere(s *insight.Snapshot, name, namespace string) string {
	for _, svc := range insight.All[*corev1.Service](s, "") {
		if svc.Name == name && svc.Namespace != namespace {
			return fmt.Sprintf("There is one in namespace %s, but an Ingress reaches Services of its own namespace only.", svc.Namespace)
		}
	}
	return ""
}

// otherBackendPort points the rule at the Service's port, if there is only one.
func otherBackendPort(i *networkingv1.Ingress, b ingressBackend, svc *corev1.Service) []insight.Mend {
	if len(svc.Spec.Ports) != 1 {
		return editIngress(i, "names a port of the Service")
	}
	value := fmt.Sprintf(`{"number":%d}`, svc.Spec.Ports[0].Port)
	for r, rule := range i.Spec.Rules {
		if rule.HTTP == nil || rule.Host != b.host {
			continue
		}
		for p, path := range rule.HTTP.Paths {
			if cmp.Or(path.Path, "/") == b.path && path.Backend.Service != nil && path.Backend.Service.Name == svc.Name {
				return []insight.Mend{insight.JSONPatched("networking.k8s.io", "v1", "ingresses", insight.RefOf(i),
					fmt.Sprintf(`[{"op":"replace","path":"/spec/rules/%d/http/paths/%d/backend/service/port","value":%s}]`, r, p, value), "names the Service's only port")}
			}
		}
	}
	return editIngress(i, "names a port of the Service")
}
