package networking

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/periplus/periplus/apiserver/validation"
)

// A policyCheck checks one policy. What was stored under older rules may stay.
type policyCheck struct {
	errs     field.ErrorList
	ranges   []string              // CIDRs that the policy had
	selector *metav1.LabelSelector // the pods that the policy was for
}

// networkPolicy checks a policy; old is nil for a new one.
func networkPolicy(spec, old *networkingv1.NetworkPolicySpec) field.ErrorList {
	var c policyCheck
	if old != nil {
		c.keep(old)
	}
	at := field.NewPath("spec")
	c.labels(&spec.PodSelector, at.Child("podSelector"))
	eachPeer(spec, func(ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, rule *field.Path, peerField string) {
		for i := range ports {
			c.port(&ports[i], rule.Child("ports").Index(i))
		}
		for i := range peers {
			c.peer(&peers[i], rule.Child(peerField).Index(i))
		}
	})
	types := at.Child("policyTypes")
	if len(spec.PolicyTypes) > 2 {
		return append(c.errs, field.Invalid(types, &spec.PolicyTypes, "may not specify more than two policyTypes"))
	}
	for i, t := range spec.PolicyTypes {
		if t != networkingv1.PolicyTypeIngress && t != networkingv1.PolicyTypeEgress {
			c.errs = append(c.errs, field.NotSupported(types.Index(i), t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}))
		}
	}
	return c.errs
}

// eachPeer visits the rules of a policy in both directions.
func eachPeer(spec *networkingv1.NetworkPolicySpec, visit func([]networkingv1.NetworkPolicyPort, []networkingv1.NetworkPolicyPeer, *field.Path, string)) {
	at := field.NewPath("spec")
	for i := range spec.Ingress {
		visit(spec.Ingress[i].Ports, spec.Ingress[i].From, at.Child("ingress").Index(i), "from")
	}
	for i := range spec.Egress {
		visit(spec.Egress[i].Ports, spec.Egress[i].To, at.Child("egress").Index(i), "to")
	}
}

func (c *policyCheck) keep(old *networkingv1.NetworkPolicySpec) {
	c.selector = &old.PodSelector
	eachPeer(old, func(_ []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, _ *field.Path, _ string) {
		for _, p := range peers {
			if p.IPBlock != nil {
				c.ranges = append(append(c.ranges, p.IPBlock.CIDR), p.IPBlock.Except...)
			}
		}
	})
}

func (c *policyCheck) labels(s *metav1.LabelSelector, at *field.Path) {
	c.errs = append(c.errs, validation.LabelSelector(s, c.selector, at)...)
}

func (c *policyCheck) port(p *networkingv1.NetworkPolicyPort, at *field.Path) {
	invalid := func(name string, value any, messages ...string) {
		for _, m := range messages {
			c.errs = append(c.errs, field.Invalid(at.Child(name), value, m))
		}
	}
	if p.Protocol != nil {
		switch *p.Protocol {
		case corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		default:
			c.errs = append(c.errs, field.NotSupported(at.Child("protocol"), *p.Protocol, []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}))
		}
	}
	switch {
	case p.Port == nil:
		if p.EndPort != nil {
			invalid("endPort", *p.EndPort, "may not be specified when `port` is not specified")
		}
	case p.Port.Type == intstr.String:
		if p.EndPort != nil {
			invalid("endPort", *p.EndPort, "may not be specified when `port` is non-numeric")
		}
		invalid("port", p.Port.StrVal, utilvalidation.IsValidPortName(p.Port.StrVal)...)
	default:
		invalid("port", p.Port.IntVal, utilvalidation.IsValidPortNum(int(p.Port.IntVal))...)
		if p.EndPort != nil {
			if *p.EndPort < p.Port.IntVal {
				invalid("endPort", *p.EndPort, "must be greater than or equal to `port`")
			}
			invalid("endPort", *p.EndPort, utilvalidation.IsValidPortNum(int(*p.EndPort))...)
		}
	}
}

func (c *policyCheck) peer(p *networkingv1.NetworkPolicyPeer, at *field.Path) {
	if p.PodSelector != nil {
		c.labels(p.PodSelector, at.Child("podSelector"))
	}
	if p.NamespaceSelector != nil {
		c.labels(p.NamespaceSelector, at.Child("namespaceSelector"))
	}
	if p.IPBlock != nil {
		c.block(p.IPBlock, at.Child("ipBlock"))
	}
	switch selects := p.PodSelector != nil || p.NamespaceSelector != nil; {
	case p.IPBlock == nil && !selects:
		c.errs = append(c.errs, field.Required(at, "must specify a peer"))
	case p.IPBlock != nil && selects:
		c.errs = append(c.errs, field.Forbidden(at, "may not specify both ipBlock and another peer"))
	}
}

func (c *policyCheck) block(b *networkingv1.IPBlock, at *field.Path) {
	if b.CIDR == "" {
		c.errs = append(c.errs, field.Required(at.Child("cidr"), ""))
		return
	}
	c.errs = append(c.errs, validation.LegacyCIDR(at.Child("cidr"), b.CIDR, c.ranges)...)
	_, whole, err := netutils.ParseCIDRSloppy(b.CIDR)
	if err != nil {
		return // reported above
	}
	bits, _ := whole.Mask.Size()
	for i, text := range b.Except {
		p := at.Child("except").Index(i)
		c.errs = append(c.errs, validation.LegacyCIDR(p, text, c.ranges)...)
		_, part, err := netutils.ParseCIDRSloppy(text)
		if err != nil {
			continue
		}
		if partBits, _ := part.Mask.Size(); !whole.Contains(part.IP) || bits >= partBits {
			c.errs = append(c.errs, field.Invalid(p, text, "must be a strict subset of `cidr`"))
		}
	}
}

func networkPolicyWarnings(spec *networkingv1.NetworkPolicySpec) (list []string) {
	eachPeer(spec, func(_ []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, rule *field.Path, peerField string) {
		for i := range peers {
			b := peers[i].IPBlock
			if b == nil {
				continue
			}
			at := rule.Child(peerField).Index(i).Child("ipBlock")
			list = append(list, validation.CIDRWarning(at.Child("cidr"), b.CIDR)...)
			for j, text := range b.Except {
				list = append(list, validation.CIDRWarning(at.Child("except").Index(j), text)...)
			}
		}
	})
	return list
}
