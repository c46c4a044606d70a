package mutating

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/periplus/periplus/apiserver/admission/policy"
)

// A program is a policy in the form that is evaluated.
type program struct {
	compiler   *cel.CompositedCompiler
	conditions matchconditions.Matcher // nil without conditions
	mutations  []patch.Patcher
	err        error
}

func compile(p *admissionregistrationv1.MutatingAdmissionPolicy) *program {
	c, err := cel.NewCompositedCompiler(policy.Environments())
	if err != nil {
		return &program{err: err}
	}
	out := &program{compiler: c}
	declared := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	variables := make([]cel.NamedExpressionAccessor, len(p.Spec.Variables))
	for i, v := range p.Spec.Variables {
		variables[i] = &policy.Expression{Name: v.Name, Text: v.Expression, Kind: celgo.AnyType}
	}
	c.CompileAndStoreVariables(variables, declared, environment.StoredExpressions)
	if len(p.Spec.MatchConditions) > 0 {
		list := make([]cel.ExpressionAccessor, len(p.Spec.MatchConditions))
		for i := range p.Spec.MatchConditions {
			m := matchconditions.MatchCondition(p.Spec.MatchConditions[i])
			list[i] = &m
		}
		out.conditions = matchconditions.NewMatcher(c.CompileCondition(list, declared, environment.StoredExpressions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
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

// context lets expressions see the policy's variables.
func (p *program) context(ctx context.Context) context.Context { return p.compiler.CreateContext(ctx) }
