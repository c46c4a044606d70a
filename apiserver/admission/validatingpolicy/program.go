package validatingpolicy

import (
	"context"
	"fmt"
	"strings"
	"sync"

	celgo "github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
)

// environments is made when the first policy is compiled.
var environments = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// An expression is one in CEL, with the type that it must have; name is a variable's.
type expression struct {
	name, text string
	kind       *celgo.Type
}

func (e *expression) GetName() string       { return e.name }
func (e *expression) GetExpression() string { return e.text }
func (e *expression) ReturnTypes() []*celgo.Type {
	return []*celgo.Type{e.kind}
}

// A program is a policy in the form that is evaluated.
type program struct {
	policy      *admissionregistrationv1.ValidatingAdmissionPolicy
	conditions  matchconditions.Matcher // nil without conditions
	validations cel.ConditionEvaluator
	messages    cel.ConditionEvaluator
	err         error
}

func compile(p *admissionregistrationv1.ValidatingAdmissionPolicy) *program {
	out := &program{policy: p}
	c, err := cel.NewCompositedCompiler(environments())
	if err != nil {
		out.err = err
		return out
	}
	declared := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	variables := make([]cel.NamedExpressionAccessor, len(p.Spec.Variables))
	for i, v := range p.Spec.Variables {
		variables[i] = &expression{v.Name, v.Expression, celgo.AnyType}
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
	checks, messages := make([]cel.ExpressionAccessor, len(p.Spec.Validations)), make([]cel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		checks[i] = &expression{text: v.Expression, kind: celgo.BoolType}
		if v.MessageExpression != "" {
			messages[i] = &expression{text: v.MessageExpression, kind: celgo.StringType}
		}
	}
	out.validations = c.CompileCondition(checks, declared, environment.StoredExpressions)
	declared.HasAuthorizer = false
	out.messages = c.CompileCondition(messages, declared, environment.StoredExpressions)
	return out
}

// A violation is one validation that does not hold.
type violation struct {
	message string
	reason  metav1.StatusReason
}

// evaluate returns what of a policy a write violates.
func (p *program) evaluate(ctx context.Context, attributes *upstream.VersionedAttributes, request *admissionv1.AdmissionRequest, params runtime.Object, namespace *corev1.Namespace, who authorizer.UnconditionalAuthorizer) []violation {
	if p.err != nil {
		return p.failed(p.err)
	}
	if p.conditions != nil {
		result := p.conditions.Match(ctx, attributes, params, who)
		if result.Error != nil {
			return p.failed(result.Error)
		}
		if !result.Matches {
			return nil
		}
	}
	variables := cel.OptionalVariableBindings{VersionedParams: params}
	ns := cel.CreateNamespaceObject(namespace)
	results, left, err := p.validations.ForInput(ctx, attributes, request, cel.OptionalVariableBindings{VersionedParams: params, Authorizer: who}, ns, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return p.failed(err)
	}
	var out []violation
	var messages []cel.EvaluationResult
	for i, result := range results {
		switch {
		case result.Error != nil:
			out = append(out, p.failed(result.Error)...)
		case result.EvalResult != celtypes.True:
			if messages == nil {
				if messages, _, err = p.messages.ForInput(ctx, attributes, request, variables, ns, left); err != nil {
					messages = []cel.EvaluationResult{}
				}
			}
			out = append(out, p.violated(i, messages))
		}
	}
	return out
}

// failed is an evaluation that came to no result: a violation, unless failures are ignored.
func (p *program) failed(err error) []violation {
	if f := p.policy.Spec.FailurePolicy; f != nil && *f == admissionregistrationv1.Ignore {
		return nil
	}
	return []violation{{message: err.Error()}}
}

func (p *program) violated(i int, messages []cel.EvaluationResult) violation {
	v := &p.policy.Spec.Validations[i]
	out := violation{reason: metav1.StatusReasonInvalid}
	if v.Reason != nil {
		out.reason = *v.Reason
	}
	if i < len(messages) && messages[i].Error == nil && messages[i].EvalResult != nil {
		if text, ok := messages[i].EvalResult.Value().(string); ok {
			text = strings.TrimSpace(text)
			if len(text) <= celconfig.MaxEvaluatedMessageExpressionSizeBytes && !strings.Contains(text, "\n") {
				out.message = text
			}
		}
	}
	if out.message == "" {
		out.message = strings.TrimSpace(v.Message)
	}
	if out.message == "" {
		out.message = fmt.Sprintf("failed expression: %v", strings.TrimSpace(v.Expression))
	}
	return out
}
