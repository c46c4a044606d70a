package mutating

import (
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/periplus/periplus/apiserver/admission/policy"
)

// A program is a policy in the form that is evaluated.
type program struct {
	*policy.Frame
	mutations []patch.Patcher
	err       error
}

func compile(p *rule) *program {
	c, err := policy.NewFrame(p.Name, p.Spec.ParamKind, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.FailurePolicy)
	if err != nil {
		return &program{err: err}
	}
	out, declared := &program{Frame: c}, c.Declared
	declared.HasPatchTypes = true
	for i := range p.Spec.Mutations {
		switch m := &p.Spec.Mutations[i]; {
		case m.JSONPatch != nil:
			e := &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}
			out.mutations = append(out.mutations, patch.NewJSONPatcher(c.CompileMutatingEvaluator(e, declared, environment.StoredExpressions)))
		case m.ApplyConfiguration != nil:
			e := &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}
			out.mutations = append(out.mutations, patch.NewApplyConfigurationPatcher(c.CompileMutatingEvaluator(e, declared, environment.StoredExpressions)))
		}
	}
	return out
}
