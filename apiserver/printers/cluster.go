package printers

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	nodev1 "k8s.io/api/node/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func coordinationTables() tables {
	return tables{
		"leases": table(columns{name(), text("Holder", doc(coordinationv1.LeaseSpec{}, "holderIdentity")), age()},
			func(l *coordinationv1.Lease) []any { return []any{l.Name, orNil(l.Spec.HolderIdentity, ""), old(l)} }),
	}
}

func runtimeClassTables() tables {
	return tables{
		"runtimeclasses": table(columns{name(), text("Handler", doc(nodev1.RuntimeClass{}, "handler")), age()},
			func(c *nodev1.RuntimeClass) []any { return []any{c.Name, c.Handler, old(c)} }),
	}
}

func aggregationTables() tables {
	return tables{
		"apiservices": table(columns{
			name(),
			text("Service", "The Service that answers, or Local."),
			text("Available", "Whether it can be reached."),
			age(),
		}, func(s *apiregistrationv1.APIService) []any {
			service := "Local"
			if r := s.Spec.Service; r != nil {
				service = r.Namespace + "/" + r.Name
			}
			available := string(apiregistrationv1.ConditionUnknown)
			for _, c := range s.Status.Conditions {
				if c.Type == apiregistrationv1.Available {
					available = string(c.Status)
					if c.Status != apiregistrationv1.ConditionTrue && c.Reason != "" {
						available += " (" + c.Reason + ")"
					}
				}
			}
			return []any{s.Name, service, available, old(s)}
		}),
	}
}

func admissionTables() tables {
	hooks := columns{name(), number("Webhooks", "How many webhooks are configured."), age()}
	policy := func(parts, what string) columns {
		return columns{name(), number(parts, what), text("ParamKind", doc(admissionv1.ValidatingAdmissionPolicySpec{}, "paramKind")), age()}
	}
	bound := columns{
		name(),
		text("PolicyName", doc(admissionv1.ValidatingAdmissionPolicyBindingSpec{}, "policyName")),
		text("ParamRef", doc(admissionv1.ValidatingAdmissionPolicyBindingSpec{}, "paramRef")),
		age(),
	}
	kind := func(k *admissionv1.ParamKind) string {
		if k == nil {
			return unset
		}
		return k.APIVersion + "/" + k.Kind
	}
	return tables{
		"mutatingwebhookconfigurations": table(hooks, func(c *admissionv1.MutatingWebhookConfiguration) []any {
			return []any{c.Name, int64(len(c.Webhooks)), old(c)}
		}),
		"validatingwebhookconfigurations": table(hooks, func(c *admissionv1.ValidatingWebhookConfiguration) []any {
			return []any{c.Name, int64(len(c.Webhooks)), old(c)}
		}),
		"validatingadmissionpolicies": table(policy("Validations", "How many validations the policy has."), func(p *admissionv1.ValidatingAdmissionPolicy) []any {
			return []any{p.Name, int64(len(p.Spec.Validations)), kind(p.Spec.ParamKind), old(p)}
		}),
		"mutatingadmissionpolicies": table(policy("Mutations", "How many mutations the policy has."), func(p *admissionv1.MutatingAdmissionPolicy) []any {
			return []any{p.Name, int64(len(p.Spec.Mutations)), kind(p.Spec.ParamKind), old(p)}
		}),
		"validatingadmissionpolicybindings": table(bound, func(b *admissionv1.ValidatingAdmissionPolicyBinding) []any {
			return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), old(b)}
		}),
		"mutatingadmissionpolicybindings": table(bound, func(b *admissionv1.MutatingAdmissionPolicyBinding) []any {
			return []any{b.Name, b.Spec.PolicyName, paramRef(b.Spec.ParamRef), old(b)}
		}),
	}
}

// paramRef shows which parameters are used. Whether they are in namespaces is
// not known here.
func paramRef(r *admissionv1.ParamRef) string {
	switch {
	case r == nil:
	case r.Name != "":
		return or(r.Namespace, "*") + "/" + r.Name
	case r.Selector != nil:
		return r.Selector.String()
	}
	return unset
}

func flowTables() tables {
	limited := func(field string) string { return doc(flowcontrolv1.QueuingConfiguration{}, field) }
	return tables{
		"flowschemas": table(columns{
			name(),
			text("PriorityLevel", doc(flowcontrolv1.PriorityLevelConfigurationReference{}, "name")),
			text("MatchingPrecedence", doc(flowcontrolv1.FlowSchemaSpec{}, "matchingPrecedence")),
			text("DistinguisherMethod", doc(flowcontrolv1.FlowSchemaSpec{}, "distinguisherMethod")),
			age(),
			text("MissingPL", "Whether the priority level does not exist."),
		}, func(s *flowcontrolv1.FlowSchema) []any {
			method := none
			if m := s.Spec.DistinguisherMethod; m != nil {
				method = string(m.Type)
			}
			missing := "?"
			for _, c := range s.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
					missing = string(c.Status)
					break
				}
			}
			return []any{s.Name, s.Spec.PriorityLevelConfiguration.Name, int64(s.Spec.MatchingPrecedence), method, old(s), missing}
		}),
		"prioritylevelconfigurations": table(columns{
			name(),
			text("Type", doc(flowcontrolv1.PriorityLevelConfigurationSpec{}, "type")),
			text("NominalConcurrencyShares", doc(flowcontrolv1.LimitedPriorityLevelConfiguration{}, "nominalConcurrencyShares")),
			text("Queues", limited("queues")),
			text("HandSize", limited("handSize")),
			text("QueueLengthLimit", limited("queueLengthLimit")),
			age(),
		}, func(p *flowcontrolv1.PriorityLevelConfiguration) []any {
			shares, queues, hand, length := any(none), any(none), any(none), any(none)
			if l := p.Spec.Limited; l != nil {
				shares = deref(l.NominalConcurrencyShares, 0)
				if q := l.LimitResponse.Queuing; q != nil {
					queues, hand, length = q.Queues, q.HandSize, q.QueueLengthLimit
				}
			}
			return []any{p.Name, string(p.Spec.Type), shares, queues, hand, length, old(p)}
		}),
	}
}
