package crd

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// A version is one version of a definition, with its schema.
type version struct {
	gvk        schema.GroupVersionKind
	spec       *apiextensionsv1.CustomResourceDefinitionVersion
	preserve   bool // spec.preserveUnknownFields, of old definitions
	namespaced bool
	tag        string // differs whenever the definition does

	compiled func() *compiled
	rules    func() *cel.Validator // nil if the schema has none
}

// compiled is a schema in the forms that work needs.
type compiled struct {
	structural *structuralschema.Structural // nil without a schema
	validator  validation.SchemaValidator
	status     validation.SchemaValidator // of the status alone; nil without a schema of it
	err        error
}

func newVersion(crd *apiextensionsv1.CustomResourceDefinition, spec *apiextensionsv1.CustomResourceDefinitionVersion) *version {
	v := &version{
		gvk:      schema.GroupVersionKind{Group: crd.Spec.Group, Version: spec.Name, Kind: crd.Status.AcceptedNames.Kind},
		spec:     spec,
		tag:      tagOf(string(crd.UID), crd.Generation),
		preserve: crd.Spec.PreserveUnknownFields, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	v.compiled = sync.OnceValue(v.compile)
	v.rules = sync.OnceValue(func() *cel.Validator {
		return cel.NewValidator(v.compiled().structural, true, celconfig.PerCallLimit)
	})
	return v
}

func (v *version) new() *Object { return &Object{version: v} }

// internal returns the schema in the form that apiextensions' libraries take.
func internal(v *apiextensionsv1.CustomResourceDefinitionVersion) (*apiextensions.JSONSchemaProps, error) {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	out := &apiextensions.CustomResourceValidation{}
	// The conversion shares parts of its input, which is an object of the cache.
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema.DeepCopy(), out, nil); err != nil {
		return nil, fmt.Errorf("convert the schema of version %s: %w", v.Name, err)
	}
	return out.OpenAPIV3Schema, nil
}

func (v *version) compile() *compiled {
	c := &compiled{}
	props, err := internal(v.spec)
	if err != nil {
		c.err = err
		return c
	}
	if props != nil {
		structural, err := structuralschema.NewStructural(props)
		switch {
		case err == nil && !v.preserve:
			c.structural = structural.DeepCopy()
			if err := defaulting.PruneDefaults(c.structural); err != nil {
				c.err = fmt.Errorf("prune the defaults of version %s: %w", v.spec.Name, err)
			}
		case err == nil:
			c.structural = structural
		case !v.preserve:
			c.err = fmt.Errorf("the schema of version %s is not structural: %w", v.spec.Name, err)
		}
	}
	if c.validator, _, err = validation.NewSchemaValidator(props); err != nil {
		c.err = err
	}
	if props != nil {
		if status, ok := props.Properties["status"]; ok {
			if c.status, _, err = validation.NewSchemaValidator(&status); err != nil {
				c.err = err
			}
		}
	}
	return c
}

// coerce drops from content what the schema does not know and fills defaults.
// Unknown paths are added to unknown, if that is not nil.
func (v *version) coerce(content map[string]any, unknown *[]string) error {
	c := v.compiled()
	if c.err != nil {
		return fmt.Errorf("the server could not properly serve the CR schema: %w", c.err)
	}
	if !v.preserve {
		paths := pruning.PruneWithOptions(content, c.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: unknown != nil})
		if unknown != nil {
			*unknown = append(*unknown, paths...)
		}
		defaulting.PruneNonNullableNullsWithoutDefaults(content, c.structural)
	}
	if c.structural == nil {
		return nil
	}
	refused, paths := objectmeta.CoerceWithOptions(nil, content, c.structural, false, objectmeta.CoerceOptions{
		DropInvalidFields: unknown == nil, ReturnUnknownFieldPaths: unknown != nil,
	})
	if refused != nil {
		return refused
	}
	if unknown != nil {
		*unknown = append(*unknown, paths...)
	}
	defaulting.Default(content, c.structural)
	return nil
}

// prune drops from content what the schema does not know.
func (v *version) prune(content map[string]any) error {
	c := v.compiled()
	if c.err != nil {
		return c.err
	}
	if !v.preserve {
		pruning.Prune(content, c.structural, true)
	}
	return nil
}
