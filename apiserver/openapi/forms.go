package openapi

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

const components = "#/components/schemas/"

// formV3 turns definitions into the form of OpenAPI v3, in place: references
// name components and stand alone.
func formV3(defs map[string]*spec.Schema) {
	for _, s := range defs {
		delete(s.Extensions, common.ExtensionV2Schema)
		eachPart(s, func(s *spec.Schema) {
			ref := s.Ref.String()
			if ref == "" {
				return
			}
			s.Ref = spec.MustCreateRef(components + strings.TrimPrefix(ref, definitions))
			if s.Description != "" || s.Default != nil || len(s.Extensions) > 0 {
				s.AllOf = []spec.Schema{{SchemaProps: spec.SchemaProps{Ref: s.Ref}}}
				s.Ref = spec.Ref{}
			}
		})
	}
}

// formV2 turns definitions into the form of OpenAPI v2, in place: without
// defaults, and with what v2 can say of values of several types.
func formV2(defs map[string]*spec.Schema) {
	for name, s := range defs {
		if v2, ok := s.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
			gvk := s.Extensions[gvkExtension]
			*s = v2
			if gvk != nil {
				s.AddExtension(gvkExtension, gvk)
			}
			defs[name] = s
		}
		if gvk := s.Extensions[gvkExtension]; gvk != nil && s.Extensions[preserveExtension] == true {
			// Of a custom kind that takes any field v2 can say nothing more: kubectl would
			// complain of all fields but those that are named.
			*s = spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
			s.AddExtension(gvkExtension, gvk)
		}
		eachPart(s, func(s *spec.Schema) { s.Default, s.Nullable = nil, false })
	}
}

// eachPart calls visit with s and all schemas inside it. Parts are copied
// first, as definitions may share them.
func eachPart(s *spec.Schema, visit func(*spec.Schema)) {
	if s.Properties != nil {
		s.Properties = maps.Clone(s.Properties)
		for name, p := range s.Properties {
			p.Extensions = maps.Clone(p.Extensions)
			eachPart(&p, visit)
			s.Properties[name] = p
		}
	}
	one := func(p *spec.Schema) *spec.Schema {
		if p == nil {
			return nil
		}
		c := *p
		c.Extensions = maps.Clone(c.Extensions)
		eachPart(&c, visit)
		return &c
	}
	if s.Items != nil {
		s.Items = &spec.SchemaOrArray{Schema: one(s.Items.Schema), Schemas: s.Items.Schemas}
	}
	if s.AdditionalProperties != nil {
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: s.AdditionalProperties.Allows, Schema: one(s.AdditionalProperties.Schema)}
	}
	for _, list := range []*[]spec.Schema{&s.AllOf, &s.OneOf, &s.AnyOf} {
		*list = slices.Clone(*list)
		for i := range *list {
			eachPart(&(*list)[i], visit)
		}
	}
	visit(s)
}
