package webhook

import (
	"context"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/periplus/periplus/apiserver/admission"
)

// environments is made when the first condition is compiled: it costs some
// milliseconds and some memory.
var environments = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// conditions are the compiled matchConditions of a hook (CEL).
type conditions struct{ matcher matchconditions.Matcher }

func compile(name, kind string, policy *admissionregistrationv1.FailurePolicyType, list []admissionregistrationv1.MatchCondition) *conditions {
	expressions := make([]cel.ExpressionAccessor, len(list))
	for i := range list {
		c := matchconditions.MatchCondition(list[i])
		expressions[i] = &c
	}
	evaluator := cel.NewConditionCompiler(environments()).CompileCondition(expressions, cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	return &conditions{matchconditions.NewMatcher(evaluator, policy, "webhook", kind, name)}
}

// holds reports whether all conditions are true of a, whose objects are given in
// the version of m.
func (c *conditions) holds(ctx context.Context, a *admission.Attributes, m *admission.Match, object, old runtime.Object) (bool, error) {
	who := a.User
	if who == nil {
		who = &user.DefaultInfo{}
	}
	record := upstream.NewAttributesRecord(object, old, m.Kind, a.Namespace, a.Name, m.Resource, a.Subresource,
		upstream.Operation(a.Operation), a.Options, a.DryRun, who)
	result := c.matcher.Match(ctx, &upstream.VersionedAttributes{
		Attributes: record, VersionedKind: m.Kind,
		VersionedObject: upstream.NewLazyObject(object), VersionedOldObject: upstream.NewLazyObject(old),
	}, nil, a.Authorizer)
	return result.Matches, result.Error
}
