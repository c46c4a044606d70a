package authz

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Attributes returns q as upstream's libraries want it.
func (q *Question) Attributes() authorizer.Attributes { return attributes{q} }

// FromAttributes returns the question of one of upstream's libraries.
func FromAttributes(a authorizer.Attributes) *Question {
	q := &Question{User: a.GetUser(), Verb: a.GetVerb(), IsResource: a.IsResourceRequest(), Path: a.GetPath()}
	if !q.IsResource {
		return q
	}
	q.Group, q.Version, q.Resource, q.Subresource = a.GetAPIGroup(), a.GetAPIVersion(), a.GetResource(), a.GetSubresource()
	q.Namespace, q.Name = a.GetNamespace(), a.GetName()
	// What cannot be read does not confine.
	if r, err := a.GetFieldSelector(); err == nil {
		q.FieldSelector = FieldText(r)
	}
	if r, err := a.GetLabelSelector(); err == nil {
		q.LabelSelector = LabelText(r)
	}
	return q
}

// FieldText writes requirements as a selector.
func FieldText(r fields.Requirements) string {
	all := make([]fields.Selector, 0, len(r))
	for _, x := range r {
		if x.Operator == "!=" {
			all = append(all, fields.OneTermNotEqualSelector(x.Field, x.Value))
			continue
		}
		all = append(all, fields.OneTermEqualSelector(x.Field, x.Value))
	}
	return fields.AndSelectors(all...).String()
}

// LabelText writes requirements as a selector.
func LabelText(r labels.Requirements) string { return labels.NewSelector().Add(r...).String() }

// Selects reports whether the field selector demands that a field has a value.
func (q *Question) Selects(field, value string) bool {
	if q.FieldSelector == "" {
		return false
	}
	s, err := fields.ParseSelector(q.FieldSelector)
	if err != nil {
		return false
	}
	got, ok := s.RequiresExactMatch(field)
	return ok && got == value
}

type attributes struct{ q *Question }

var _ authorizer.Attributes = attributes{}

func (a attributes) GetUser() user.Info      { return a.q.User }
func (a attributes) GetVerb() string         { return a.q.Verb }
func (a attributes) GetNamespace() string    { return a.q.Namespace }
func (a attributes) GetResource() string     { return a.q.Resource }
func (a attributes) GetSubresource() string  { return a.q.Subresource }
func (a attributes) GetName() string         { return a.q.Name }
func (a attributes) GetAPIGroup() string     { return a.q.Group }
func (a attributes) GetAPIVersion() string   { return a.q.Version }
func (a attributes) IsResourceRequest() bool { return a.q.IsResource }
func (a attributes) GetPath() string         { return a.q.Path }

// IsReadOnly reports whether the verb changes nothing.
func (a attributes) IsReadOnly() bool { return a.q.ReadOnly() }

// ReadOnly reports whether the verb changes nothing.
func (q *Question) ReadOnly() bool { return q.Verb == "get" || q.Verb == "list" || q.Verb == "watch" }

func (a attributes) GetFieldSelector() (fields.Requirements, error) {
	if a.q.FieldSelector == "" {
		return nil, nil
	}
	s, err := fields.ParseSelector(a.q.FieldSelector)
	if err != nil {
		return nil, err
	}
	return s.Requirements(), nil
}

func (a attributes) GetLabelSelector() (labels.Requirements, error) {
	if a.q.LabelSelector == "" {
		return nil, nil
	}
	s, err := labels.Parse(a.q.LabelSelector)
	if err != nil {
		return nil, err
	}
	r, _ := s.Requirements()
	return r, nil
}
