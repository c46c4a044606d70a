package policy

import (
	"context"

	celgo "github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// A Frame is what compiled policies have in common: variables, and the conditions under
// which they apply. A kind compiles its rules with it.
type Frame struct {
	*cel.CompositedCompiler
	// Declared is what the expressions may use besides.
	Declared cel.OptionalVariableDeclarations

	conditions matchconditions.Matcher // nil without conditions
}

// NewFrame compiles a policy's variables and conditions.
func NewFrame(name string, param *admissionregistrationv1.ParamKind, variables []admissionregistrationv1.Variable,
	conditions []admissionregistrationv1.MatchCondition, failure *admissionregistrationv1.FailurePolicyType) (*Frame, error) {
	c, err := cel.NewCompositedCompiler(Environments())
	if err != nil {
		return nil, err
	}
	f := &Frame{CompositedCompiler: c, Declared: cel.OptionalVariableDeclarations{HasParams: param != nil, HasAuthorizer: true}}
	named := make([]cel.NamedExpressionAccessor, len(variables))
	for i, v := range variables {
		named[i] = &Expression{Name: v.Name, Text: v.Expression, Kind: celgo.AnyType}
	}
	c.CompileAndStoreVariables(named, f.Declared, environment.StoredExpressions)
	if len(conditions) > 0 {
		list := make([]cel.ExpressionAccessor, len(conditions))
		for i := range conditions {
			m := matchconditions.MatchCondition(conditions[i])
			list[i] = &m
		}
		f.conditions = matchconditions.NewMatcher(c.CompileCondition(list, f.Declared, environment.StoredExpressions), failure, "policy", "validate", name)
	}
	return f, nil
}

// HasConditions reports whether Applies looks at anything.
func (f *Frame) HasConditions() bool { return f.conditions != nil }

// Applies reports whether all conditions hold. attributes are not looked at without any.
func (f *Frame) Applies(ctx context.Context, attributes *upstream.VersionedAttributes, params runtime.Object, who authorizer.UnconditionalAuthorizer) (bool, error) {
	if f.conditions == nil {
		return true, nil
	}
	result := f.conditions.Match(ctx, attributes, params, who)
	return result.Matches, result.Error
}
