package why

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

// serviceRules: nobody answers at a Service.
func serviceRules() []Rule {
	return []Rule{
		on("external-name", "the name that an ExternalName Service leads to cannot be resolved", func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
			if svc.Spec.Type != corev1.ServiceTypeExternalName {
				return nil
			}
			name := strings.TrimSuffix(svc.Spec.ExternalName, ".")
			f := &insight.Finding{Part: "name", Evidence: []string{"spec: externalName is " + name}, Mend: []insight.Mend{insight.Do("corrects it", insight.Kubectl(svc.Namespace, "edit service %s", svc.Name))}}
			if inside, ok := strings.CutSuffix(name, ".svc.cluster.local"); ok {
				target, namespace, _ := strings.Cut(inside, ".")
				if !insight.Missing[*corev1.Service](s, namespace, target) {
					return nil
				}
				f.What = fmt.Sprintf("it leads to Service %q in namespace %s, which does not exist%s", target, namespace, like(target, names[*corev1.Service](s, namespace)))
				return one(f)
			}
			err, tried := s.Name(name)
			if !tried || err == nil {
				return nil
			}
			f.What = fmt.Sprintf("it leads to %q, a name that cannot be resolved", name)
			f.Evidence = append(f.Evidence, "from here: "+err.Error())
			return one(f)
		}),
		on("service-selects-nothing", "no pod has the labels that the Service selects", func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
			if len(svc.Spec.Selector) == 0 || svc.Spec.Type == corev1.ServiceTypeExternalName || !insight.Read[*corev1.Pod](s) || len(insight.Living(s.Selected(svc.Namespace, svc.Spec.Selector))) > 0 {
				return nil
			}
			f := &insight.Finding{Part: "selector", What: "no pod has the labels that the Service selects: " + labelText(svc.Spec.Selector), Mend: []insight.Mend{}}
			near, bad := nearest(s, svc)
			if near == nil {
				f.Evidence = []string{fmt.Sprintf("namespace %s has no pods with any of these labels", svc.Namespace)}
				if template := templateFor(s, svc); template != "" {
					f.Level, f.What = insight.Effect, "the Service selects the pods of "+template+", of which there are none"
					f.Evidence = nil
				}
				f.Mend = []insight.Mend{insight.Do("which labels do the pods have?", insight.Kubectl(svc.Namespace, "get pods --show-labels"))}
				return one(f)
			}
			f.Evidence = append(f.Evidence, fmt.Sprintf("pod %s has %s", near.Name, labelText(near.Labels)))
			for _, k := range bad {
				if v, ok := near.Labels[k]; ok {
					f.Evidence = append(f.Evidence, fmt.Sprintf("differs: %s is %q, selected is %q", k, v, svc.Spec.Selector[k]))
				} else {
					f.Evidence = append(f.Evidence, fmt.Sprintf("differs: the pod has no label %s", k))
				}
			}
			f.Mend = append(f.Mend, selectLike(svc, near, bad))
			return one(f)
		}),
		onPort("service-port-name", "the Service's targetPort is a name that no container port has", func(p port) *insight.Finding {
			if p.spec.TargetPort.Type != intstr.String {
				return nil
			}
			var have []string
			for _, pod := range p.pods {
				if _, ok := insight.ContainerPort(pod, p.spec.TargetPort, p.spec.Protocol); ok {
					return nil
				}
				for _, c := range insight.Containers(&pod.Spec) {
					for _, n := range portNames(&c) {
						if !slices.Contains(have, n) {
							have = append(have, n)
						}
					}
				}
			}
			return &insight.Finding{What: fmt.Sprintf("targetPort %q is the name of no container port%s", p.spec.TargetPort.StrVal, has(have)), Evidence: []string{p.line()}, Mend: p.mends()}
		}),
		onPort("service-port-local", "the program listens on 127.0.0.1 only", func(p port) *insight.Finding {
			for _, pod := range p.pods {
				n, _ := insight.ContainerPort(pod, p.spec.TargetPort, p.spec.Protocol)
				err, _ := p.s.Port(pod.Name, cmp.Or(n, p.spec.Port))
				if !errors.Is(err, ErrLocalOnly) {
					continue
				}
				return &insight.Finding{What: fmt.Sprintf("the program listens at port %d on 127.0.0.1 only: nobody outside of the pod can reach it", cmp.Or(n, p.spec.Port)), Evidence: []string{p.line(), fmt.Sprintf("tried: port %d of pod %s: %v", cmp.Or(n, p.spec.Port), pod.Name, err)},
					Mend: []insight.Mend{workloadOf(p.s, pod).edit("let it listen on 0.0.0.0")}}
			}
			return nil
		}),
		onPort("service-port-closed", "nothing listens at the Service's targetPort", func(p port) *insight.Finding {
			number := p.spec.TargetPort.IntVal
			for _, pod := range p.pods {
				n, _ := insight.ContainerPort(pod, p.spec.TargetPort, p.spec.Protocol)
				if n == 0 {
					n = p.spec.Port
				}
				err, tried := p.s.Port(pod.Name, n)
				if !tried || err == nil {
					continue
				}
				f := &insight.Finding{What: fmt.Sprintf("nothing listens at port %d of the pods, where the Service sends its packets", n), Evidence: []string{p.line(), fmt.Sprintf("tried: port %d of pod %s: %v", n, pod.Name, err)}, Mend: p.mends()}
				if _, declared := insight.ContainerPort(pod, intstr.FromInt32(number), p.spec.Protocol); !declared {
					f.Evidence = append(f.Evidence, "spec: the container's ports are "+cmp.Or(allPorts(pod), "not stated"))
				}
				return f
			}
			return nil
		}),
		onPort("service-port-undeclared", "the Service's targetPort is not among the ports of the containers", func(p port) *insight.Finding {
			if p.spec.TargetPort.Type != intstr.Int || len(p.pods) == 0 {
				return nil
			}
			pod := p.pods[0]
			want := p.spec.TargetPort
			if want.IntVal == 0 {
				want = intstr.FromInt32(p.spec.Port)
			}
			if _, ok := insight.ContainerPort(pod, want, p.spec.Protocol); ok || allPorts(pod) == "" {
				return nil
			}
			if err, tried := p.s.Port(pod.Name, want.IntVal); tried && err == nil {
				return nil // it listens there all the same
			}
			return &insight.Finding{Level: insight.Sign, What: fmt.Sprintf("the Service sends to port %d, but the containers state %s", want.IntVal, allPorts(pod)), Why: "Stating ports is optional: it may be right all the same.", Evidence: []string{p.line()}, Mend: p.mends()}
		}),
		on("service-pods-not-ready", "the Service's pods are not ready", func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
			pods := insight.Living(s.Selected(svc.Namespace, svc.Spec.Selector))
			if len(pods) == 0 || svc.Spec.PublishNotReadyAddresses || slices.ContainsFunc(pods, conditions.PodReady) {
				return nil
			}
			return one(&insight.Finding{Level: insight.Effect, Part: "endpoints", What: fmt.Sprintf("the Service has no endpoint: none of its %s is ready", plural(len(pods), "pod"))})
		}),
		on("service-no-endpoints", "the Service has no selector and nobody gives it endpoints", func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
			if len(svc.Spec.Selector) > 0 || svc.Spec.Type == corev1.ServiceTypeExternalName || s.ReadyEndpoints(svc) > 0 || svc.Name == "kubernetes" && svc.Namespace == "default" {
				return nil
			}
			return one(&insight.Finding{Part: "endpoints", What: "the Service has no selector, and there is no EndpointSlice for it", Why: "Without a selector the endpoints are made by hand, or by a controller.", Mend: []insight.Mend{insight.Do("selects pods", insight.Kubectl(svc.Namespace, "set selector service %s KEY=VALUE", svc.Name))}})
		}),
		on("service-endpoints-missing", "the Service's pods are ready but not among its endpoints", func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
			ready := slices.DeleteFunc(insight.Living(s.Selected(svc.Namespace, svc.Spec.Selector)), func(p *corev1.Pod) bool { return !conditions.PodReady(p) })
			if len(ready) == 0 || s.ReadyEndpoints(svc) > 0 {
				return nil
			}
			return one(&insight.Finding{Level: insight.Sign, Part: "endpoints", What: fmt.Sprintf("%s ready, and the Service has no endpoint", are(len(ready))), Why: "The controller of EndpointSlices does not run, or has not come to it."})
		}),
		on("service-no-address", "nobody gives the LoadBalancer Service an address", func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
			if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || len(svc.Status.LoadBalancer.Ingress) > 0 || s.Now.Sub(svc.CreationTimestamp.Time) < patience {
				return nil
			}
			f := &insight.Finding{Part: "address", What: "nobody gives the LoadBalancer Service an address", Evidence: append([]string{"status: loadBalancer has no ingress"}, eventLines(s, svc, "SyncLoadBalancerFailed", "EnsuringLoadBalancer")...)}
			if svc.Spec.LoadBalancerClass != nil {
				f.Why = fmt.Sprintf("Only the controller of class %q does.", *svc.Spec.LoadBalancerClass)
			}
			for _, p := range svc.Spec.Ports {
				if p.NodePort != 0 {
					f.Mend = append(f.Mend, insight.Do("meanwhile it answers at every node", fmt.Sprintf("curl http://NODE:%d/", p.NodePort)))
				}
			}
			return one(f)
		}),
	}
}

func are(n int) string {
	if n == 1 {
		return "1 pod is"
	}
	return itoa(n) + " pods are"
}

// A port is one of a Service, with the pods behind it.
type port struct {
	s    *insight.Snapshot
	svc  *corev1.Service
	spec corev1.ServicePort
	pods []*corev1.Pod
}

func onPort(name, summary string, check func(p port) *insight.Finding) Rule {
	return on(name, summary, func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
		pods := insight.Living(s.Selected(svc.Namespace, svc.Spec.Selector))
		if len(pods) == 0 {
			return nil
		}
		var out []insight.Finding
		for _, spec := range svc.Spec.Ports {
			if f := check(port{s, svc, spec, pods}); f != nil {
				f.Part = "port " + cmp.Or(spec.Name, itoa(int(spec.Port)))
				out = append(out, *f)
			}
		}
		return out
	})
}

func (p port) line() string {
	return fmt.Sprintf("spec: port %d of the Service leads to targetPort %s", p.spec.Port, p.spec.TargetPort.String())
}

// mends point the Service at the only port of its pods.
func (p port) mends() []insight.Mend {
	var all []corev1.ContainerPort
	for _, c := range insight.Containers(&p.pods[0].Spec) {
		all = append(all, c.Ports...)
	}
	if len(all) == 1 && (p.spec.TargetPort.Type == intstr.String || all[0].ContainerPort != p.spec.TargetPort.IntVal) {
		i := slices.IndexFunc(p.svc.Spec.Ports, func(sp corev1.ServicePort) bool { return sp == p.spec })
		body := fmt.Sprintf(`[{"op":"replace","path":"/spec/ports/%d/targetPort","value":%d}]`, i, all[0].ContainerPort)
		return []insight.Mend{insight.JSONPatched("", "v1", "services", insight.RefOf(p.svc), body, "leads to the only port that the container states")}
	}
	return []insight.Mend{insight.Do("corrects targetPort", insight.Kubectl(p.svc.Namespace, "edit service %s", p.svc.Name))}
}

func allPorts(p *corev1.Pod) string {
	var out []string
	for _, c := range insight.Containers(&p.Spec) {
		if len(c.Ports) > 0 {
			out = append(out, portList(&c))
		}
	}
	return strings.Join(out, ", ")
}

// nearest is the pod that has most of the labels that a Service selects, and those
// that it lacks.
func nearest(s *insight.Snapshot, svc *corev1.Service) (*corev1.Pod, []string) {
	var best *corev1.Pod
	var bestBad []string
	for _, p := range insight.Living(insight.All[*corev1.Pod](s, svc.Namespace)) {
		var bad []string
		score := 0
		for _, k := range sorted(svc.Spec.Selector) {
			have, ok := p.Labels[k]
			if ok && have == svc.Spec.Selector[k] {
				score += 2
				continue
			}
			bad = append(bad, k)
			if ok {
				score++ // the key is right at least
			}
		}
		if score > 0 && (best == nil || len(bad) < len(bestBad)) {
			best, bestBad = p, bad
		}
	}
	return best, bestBad
}

// templateFor is the workload whose pods a Service would select if there were any.
func templateFor(s *insight.Snapshot, svc *corev1.Service) string {
	for _, o := range inNamespace(s, svc.Namespace) {
		if t := insight.Template(o); t != nil && matches(svc.Spec.Selector, t.Labels) {
			return insight.KindOf(o) + " " + o.GetName()
		}
	}
	return ""
}

func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return len(selector) > 0
}

// selectLike lets the Service select what the nearest pod has.
func selectLike(svc *corev1.Service, near *corev1.Pod, bad []string) insight.Mend {
	selector := maps.Clone(svc.Spec.Selector)
	parts := []string{}
	for _, k := range bad {
		if v, ok := near.Labels[k]; ok {
			selector[k] = v
			parts = append(parts, fmt.Sprintf("%q:%q", k, v))
		} else {
			delete(selector, k)
			parts = append(parts, fmt.Sprintf("%q:null", k))
		}
	}
	if len(selector) == 0 {
		return insight.Do("selects other labels", insight.Kubectl(svc.Namespace, "edit service %s", svc.Name))
	}
	body := `{"spec":{"selector":{` + strings.Join(parts, ",") + `}}}`
	m := insight.Patched("", "v1", "services", insight.RefOf(svc), body, "selects "+labelText(selector)+", as pod "+near.Name+" has it")
	return m
}

// policyRules: a NetworkPolicy keeps packets away.
func policyRules() []Rule {
	return []Rule{
		on("policy-blocks-service", "NetworkPolicies let nobody reach the Service's pods", func(s *insight.Snapshot, svc *corev1.Service) []insight.Finding {
			var out []insight.Finding
			for _, sp := range svc.Spec.Ports {
				for _, p := range insight.Living(s.Selected(svc.Namespace, svc.Spec.Selector)) {
					number, _ := insight.ContainerPort(p, sp.TargetPort, sp.Protocol)
					number = cmp.Or(number, sp.Port)
					selecting, from, open := reachable(s, p, number, cmp.Or(sp.Protocol, corev1.ProtocolTCP))
					if len(selecting) == 0 || open {
						continue
					}
					f := insight.Finding{Part: "policy " + itoa(int(number)), Evidence: []string{"policies that select pod " + p.Name + ": " + strings.Join(selecting, ", ")}}
					if len(from) > 0 {
						f.Level, f.What = insight.Note, fmt.Sprintf("port %d of the pods can be reached from some places only: %s", number, strings.Join(from, "; "))
					} else {
						f.What = fmt.Sprintf("NetworkPolicy %s lets nobody reach port %d of the pods", strings.Join(selecting, ", "), number)
						f.Mend = []insight.Mend{allowPort(svc, number, cmp.Or(sp.Protocol, corev1.ProtocolTCP))}
					}
					out = append(out, f)
					break
				}
			}
			return out
		}),
		on("policy-blocks-dns", "NetworkPolicies let the pod ask no DNS server", func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
			blocked := dnsBlocked(s, p)
			if blocked == "" || ended(p) || conditions.PodReady(p) || p.Spec.HostNetwork {
				return nil
			}
			return one(&insight.Finding{Level: insight.Effect, Part: "policy dns", What: fmt.Sprintf("NetworkPolicy %q lets the pod ask no DNS server: it can resolve no name", blocked), Mend: []insight.Mend{allowDNS(p.Namespace)}})
		}),
	}
}

func selects(s *networkingv1.NetworkPolicy, p *corev1.Pod, direction networkingv1.PolicyType) bool {
	types := s.Spec.PolicyTypes
	if len(types) == 0 {
		types = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(s.Spec.Egress) > 0 {
			types = append(types, networkingv1.PolicyTypeEgress)
		}
	}
	return slices.Contains(types, direction) && matchesSelector(s.Spec.PodSelector, p.Labels)
}

// reachable says which policies select a pod, from where they let packets to a port,
// and whether from everywhere.
func reachable(s *insight.Snapshot, p *corev1.Pod, number int32, protocol corev1.Protocol) (selecting, from []string, open bool) {
	for _, np := range insight.All[*networkingv1.NetworkPolicy](s, p.Namespace) {
		if !selects(np, p, networkingv1.PolicyTypeIngress) {
			continue
		}
		selecting = append(selecting, np.Name)
		for _, r := range np.Spec.Ingress {
			if !allowsPort(r.Ports, p, number, protocol) {
				continue
			}
			if len(r.From) == 0 {
				return selecting, nil, true
			}
			for _, peer := range r.From {
				from = append(from, peerText(peer))
			}
		}
	}
	return selecting, from, false
}

func allowsPort(ports []networkingv1.NetworkPolicyPort, p *corev1.Pod, number int32, protocol corev1.Protocol) bool {
	if len(ports) == 0 {
		return true
	}
	return slices.ContainsFunc(ports, func(r networkingv1.NetworkPolicyPort) bool {
		if r.Protocol != nil && *r.Protocol != protocol || r.Protocol == nil && protocol != corev1.ProtocolTCP {
			return false
		}
		if r.Port == nil {
			return true
		}
		n, _ := insight.ContainerPort(p, *r.Port, protocol)
		if r.EndPort != nil {
			return number >= n && number <= *r.EndPort
		}
		return n == number
	})
}

func peerText(p networkingv1.NetworkPolicyPeer) string {
	var parts []string
	if p.IPBlock != nil {
		parts = append(parts, "addresses in "+p.IPBlock.CIDR)
	}
	if p.PodSelector != nil {
		parts = append(parts, "pods with "+formatSelector(p.PodSelector))
	}
	if p.NamespaceSelector != nil {
		parts = append(parts, "namespaces with "+formatSelector(p.NamespaceSelector))
	}
	return strings.Join(parts, " in ")
}

const dnsPort = 53

// dnsBlocked is the policy that keeps a pod from asking DNS, or empty.
func dnsBlocked(s *insight.Snapshot, p *corev1.Pod) string {
	blocked := ""
	for _, np := range insight.All[*networkingv1.NetworkPolicy](s, p.Namespace) {
		if !selects(np, p, networkingv1.PolicyTypeEgress) {
			continue
		}
		blocked = np.Name
		for _, r := range np.Spec.Egress {
			if allowsPort(r.Ports, p, dnsPort, corev1.ProtocolUDP) {
				return ""
			}
		}
	}
	return blocked
}

func allowDNS(namespace string) insight.Mend {
	body := fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":"allow-dns","namespace":%q},"spec":{"podSelector":{},"policyTypes":["Egress"],"egress":[{"ports":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"}]}]}}`, namespace)
	return makePolicy(namespace, "allow-dns", body, "lets the pods of the namespace ask DNS servers")
}

func allowPort(svc *corev1.Service, number int32, protocol corev1.Protocol) insight.Mend {
	var parts []string
	for _, k := range sorted(svc.Spec.Selector) {
		parts = append(parts, fmt.Sprintf("%q:%q", k, svc.Spec.Selector[k]))
	}
	name := "allow-" + svc.Name
	body := fmt.Sprintf(`{"apiVersion":"networking.k8s.io/v1","kind":"NetworkPolicy","metadata":{"name":%q,"namespace":%q},"spec":{"podSelector":{"matchLabels":{%s}},"ingress":[{"ports":[{"port":%d,"protocol":%q}]}]}}`, name, svc.Namespace, strings.Join(parts, ","), number, protocol)
	return makePolicy(svc.Namespace, name, body, "lets everybody reach that port of these pods")
}

func makePolicy(namespace, name, body, note string) insight.Mend {
	return insight.Mend{Command: fmt.Sprintf("peri kubectl apply -f - <<'EOF'\n%s\nEOF", body), Note: note,
		Change: &insight.Change{Verb: "create", Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies", Namespace: namespace, Name: name, Body: body}}
}
