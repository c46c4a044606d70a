package validating

import (
	"context"
	"fmt"
	"strings"

	celgo "github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/periplus/periplus/apiserver/admission/policy"
)

// A program is a policy in the form that is evaluated.
type program struct {
	policy      *rule
	frame       *policy.Frame
	validations cel.ConditionEvaluator
	messages    cel.ConditionEvaluator
	audits      cel.ConditionEvaluator
	err         error
}

func compile(p *rule) *program {
	out := &program{policy: p}
	c, err := policy.NewFrame(p.Name, p.Spec.ParamKind, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.FailurePolicy)
	if err != nil {
		out.err = err
		return out
	}
	out.frame = c
	declared := c.Declared
	checks, messages := make([]cel.ExpressionAccessor, len(p.Spec.Validations)), make([]cel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		checks[i] = &policy.Expression{Text: v.Expression, Kind: celgo.BoolType}
		if v.MessageExpression != "" {
			messages[i] = &policy.Expression{Text: v.MessageExpression, Kind: celgo.StringType}
		}
	}
	out.validations = c.CompileCondition(checks, declared, environment.StoredExpressions)
	audits := make([]cel.ExpressionAccessor, len(p.Spec.AuditAnnotations))
	for i, a := range p.Spec.AuditAnnotations {
		audits[i] = &audit{a.ValueExpression}
	}
	out.audits = c.CompileCondition(audits, declared, environment.StoredExpressions)
	declared.HasAuthorizer = false
	out.messages = c.CompileCondition(messages, declared, environment.StoredExpressions)
	return out
}

// audit is the expression of an audit annotation: text, or nothing.
type audit struct{ text string }

func (a *audit) GetExpression() string { return a.text }
func (a *audit) ReturnTypes() []*celgo.Type {
	return []*celgo.Type{celgo.StringType, celgo.NullType}
}

// A note is the value of an audit annotation.
type note struct{ key, value string }

// A violation is one validation that does not hold.
type violation struct {
	message string
	reason  metav1.StatusReason
	index   int   // of the validation
	failed  error // why there is no result; nil: the validation does not hold
}

// evaluate returns what of a policy a write violates.
func (p *program) evaluate(ctx context.Context, attributes *upstream.VersionedAttributes, request *admissionv1.AdmissionRequest, params runtime.Object, namespace *corev1.Namespace, who authorizer.UnconditionalAuthorizer) ([]violation, []note) {
	if p.err != nil {
		return p.failed(p.err), nil
	}
	switch applies, err := p.frame.Applies(ctx, attributes, params, who); {
	case err != nil:
		return p.failed(err), nil
	case !applies:
		return nil, nil
	}
	variables := cel.OptionalVariableBindings{VersionedParams: params}
	ns := cel.CreateNamespaceObject(namespace)
	results, left, err := p.validations.ForInput(ctx, attributes, request, cel.OptionalVariableBindings{VersionedParams: params, Authorizer: who}, ns, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return p.failed(err), nil
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
	notes, failed := p.notes(ctx, attributes, request, cel.OptionalVariableBindings{VersionedParams: params, Authorizer: who}, ns, left)
	return append(out, failed...), notes
}

// notes evaluates the audit annotations.
func (p *program) notes(ctx context.Context, attributes *upstream.VersionedAttributes, request *admissionv1.AdmissionRequest, variables cel.OptionalVariableBindings, ns *corev1.Namespace, budget int64) (out []note, failed []violation) {
	if len(p.policy.Spec.AuditAnnotations) == 0 {
		return nil, nil
	}
	results, _, err := p.audits.ForInput(ctx, attributes, request, variables, ns, budget)
	if err != nil {
		return nil, p.failed(err)
	}
	for i, result := range results {
		if result.Error != nil {
			failed = append(failed, p.failed(result.Error)...)
			continue
		}
		if text, ok := result.EvalResult.Value().(string); ok {
			if text = strings.TrimSpace(text); text != "" {
				out = append(out, note{p.policy.Spec.AuditAnnotations[i].Key, text[:min(len(text), mostAuditText)]})
			}
		}
	}
	return out, failed
}

// mostAuditText is how much of an audit annotation's value is kept, in bytes.
const mostAuditText = 10 * 1024

// failed is an evaluation that came to no result: a violation, unless failures are ignored.
func (p *program) failed(err error) []violation {
	if f := p.policy.Spec.FailurePolicy; f != nil && *f == admissionregistrationv1.Ignore {
		return nil
	}
	return []violation{{message: err.Error(), failed: err}}
}

func (p *program) violated(i int, messages []cel.EvaluationResult) violation {
	v := &p.policy.Spec.Validations[i]
	out := violation{reason: metav1.StatusReasonInvalid, index: i}
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
