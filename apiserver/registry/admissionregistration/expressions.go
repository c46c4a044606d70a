package admissionregistration

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celerrors "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/periplus/periplus/apiserver/validation"
)

// typed is an expression in CEL with the types that it may have.
type typed struct {
	name, text string
	kinds      []*celgo.Type
}

func (e *typed) GetName() string            { return e.name }
func (e *typed) GetExpression() string      { return e.text }
func (e *typed) ReturnTypes() []*celgo.Type { return e.kinds }

// identifier is what a variable may be called.
var identifier = regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`)

// expressions compiles the expressions of one policy. The compiler is made when the
// first one is met; variables are known to those that come after them.
type expressions struct {
	errs     field.ErrorList
	declared cel.OptionalVariableDeclarations
	compiler *cel.CompositedCompiler
	plain    bool // there are no variables: nobody knows the word
}

func newExpressions(params, variables bool) *expressions {
	return &expressions{declared: cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}, plain: !variables}
}

func (c *expressions) add(errs ...*field.Error) { c.errs = append(c.errs, errs...) }

func (c *expressions) ready(at *field.Path) bool {
	if c.compiler == nil {
		compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
		if err != nil {
			c.add(field.InternalError(at, errNoCompiler))
			return false
		}
		c.compiler = compiler
	}
	return true
}

// report adds the error of a compilation.
func (c *expressions) report(at *field.Path, text string, err *celerrors.Error) {
	if err == nil {
		return
	}
	switch err.Type {
	case celerrors.ErrorTypeRequired:
		c.add(field.Required(at, err.Detail))
	case celerrors.ErrorTypeInvalid:
		c.add(field.Invalid(at, text, err.Detail))
	default:
		c.add(field.InternalError(at, err))
	}
}

// compile checks an expression that must be of one of the types.
func (c *expressions) compile(at *field.Path, text, shown string, declared cel.OptionalVariableDeclarations, kinds ...*celgo.Type) {
	if c.plain {
		c.report(at, shown, compiler().CompileCELExpression(&typed{text: text, kinds: kinds}, declared, environment.NewExpressions).Error)
	} else if c.ready(at) {
		c.report(at, shown, c.compiler.CompileCELExpression(&typed{text: text, kinds: kinds}, declared, environment.NewExpressions).Error)
	}
}

func (c *expressions) variables(list []admissionv1.Variable, at *field.Path) {
	for i, v := range list {
		here := at.Index(i)
		if strings.TrimSpace(v.Name) == "" {
			c.add(field.Required(here.Child("name"), "name is not specified"))
		} else if !isIdentifier(v.Name) {
			c.add(field.Invalid(here.Child("name"), v.Name, "must be a valid CEL identifier"))
		}
		text := here.Child("expression")
		if strings.TrimSpace(v.Expression) == "" {
			c.add(field.Required(text, "expression is not specified"))
		} else if c.ready(text) {
			r := c.compiler.CompileAndStoreVariable(&typed{v.Name, v.Expression, []*celgo.Type{celgo.AnyType, celgo.DynType}}, c.declared, environment.NewExpressions)
			c.report(text, v.Expression, r.Error)
		}
	}
}

// isIdentifier refuses words that CEL keeps to itself.
func isIdentifier(name string) bool {
	return identifier.MatchString(name) && !slices.Contains([]string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import",
		"let", "loop", "package", "namespace", "return", "var", "void", "while",
	}, name)
}

func (c *expressions) validation(v *admissionv1.Validation, at *field.Path) {
	if here := at.Child("expression"); strings.TrimSpace(v.Expression) == "" {
		c.add(field.Required(here, "expression is not specified"))
	} else {
		c.compile(here, v.Expression, v.Expression, c.declared, celgo.BoolType)
	}
	if here := at.Child("messageExpression"); v.MessageExpression != "" && strings.TrimSpace(v.MessageExpression) == "" {
		c.add(field.Invalid(here, v.MessageExpression, "must be non-empty if specified"))
	} else if v.MessageExpression != "" {
		plain := c.declared
		plain.HasAuthorizer = false
		c.compile(here, v.MessageExpression, v.MessageExpression, plain, celgo.StringType)
	}
	if text, here := strings.TrimSpace(v.Message), at.Child("message"); v.Message != "" && text == "" {
		c.add(field.Invalid(here, v.Message, "must be non-empty if specified"))
	} else if strings.Contains(text, "\n") {
		c.add(field.Invalid(here, v.Message, "must not contain line breaks"))
	}
	known := []metav1.StatusReason{metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge}
	if v.Reason != nil && !slices.Contains(known, *v.Reason) {
		c.add(field.NotSupported(at.Child("reason"), *v.Reason, known))
	}
}

// auditAnnotations checks annotations of audit events, whose keys begin with the
// name of the policy.
func (c *expressions) auditAnnotations(policy string, list []admissionv1.AuditAnnotation, at *field.Path) {
	const most, longest = 20, 5 << 10
	if len(list) > most {
		c.add(field.Invalid(at, list, fmt.Sprintf("must not have more than %d auditAnnotations", most)))
	}
	seen := map[string]bool{}
	for i, a := range list {
		here := at.Index(i)
		if policy == "" {
			c.add(field.Invalid(here.Child("key"), a.Key, "requires metadata.name be non-empty"))
		} else {
			c.add(validation.QualifiedName(policy+"/"+a.Key, here.Child("key"))...)
		}
		switch text, value := strings.TrimSpace(a.ValueExpression), here.Child("valueExpression"); {
		case text == "":
			c.add(field.Required(value, "valueExpression is not specified"))
		case len(text) > longest:
			c.add(field.Required(value, fmt.Sprintf("must not exceed %d bytes in length", longest)))
		default:
			c.compile(value, text, a.ValueExpression, c.declared, celgo.StringType, celgo.NullType)
		}
		if seen[a.Key] {
			c.add(field.Duplicate(here.Child("key"), a.Key))
		}
		seen[a.Key] = true
	}
}

// mutation checks the union of the ways to change an object.
func (c *expressions) mutation(m *admissionv1.Mutation, at *field.Path) {
	patch, apply := at.Child("jsonPatch"), at.Child("applyConfiguration")
	declared := c.declared
	declared.HasPatchTypes = true
	expression := func(here *field.Path, text string, kind *celgo.Type) {
		trimmed := strings.TrimSpace(text)
		if trimmed == "" {
			c.add(field.Required(here, ""))
			return
		}
		c.compile(here, trimmed, trimmed, declared, kind)
	}
	switch m.PatchType {
	case admissionv1.PatchTypeJSONPatch:
		if m.JSONPatch == nil {
			c.add(field.Required(patch, "must be specified when patchType is JSONPatch"))
		} else {
			expression(patch.Child("expression"), m.JSONPatch.Expression, celgo.ListType(celgo.ObjectType("JSONPatch")))
		}
		if m.ApplyConfiguration != nil {
			c.add(field.Invalid(apply, "{applyConfiguration}", "must not be specified when patchType is JSONPatch"))
		}
	case admissionv1.PatchTypeApplyConfiguration:
		if m.ApplyConfiguration == nil {
			c.add(field.Required(apply, "must be specified when patchType is ApplyConfiguration"))
		} else {
			expression(apply.Child("expression"), m.ApplyConfiguration.Expression, celgo.ObjectType("Object"))
		}
		if m.JSONPatch != nil {
			c.add(field.Invalid(patch, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration"))
		}
	case "":
		c.add(field.Required(at.Child("patchType"), ""))
	default:
		c.add(field.NotSupported(at.Child("patchType"), m.PatchType, []admissionv1.PatchType{admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch}))
	}
}
