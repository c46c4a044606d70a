package alwaysdeny

import (
	"context"
	"errors"

	"github.com/periplus/periplus/apiserver/admission"
)

// Name is the plug-in's.
const Name = "AlwaysDeny"

type plugin struct{}

var (
	_ admission.Mutator   = plugin{}
	_ admission.Validator = plugin{}
)

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return Name }

// Admit implements admission.Mutator.
func (plugin) Admit(context.Context, *admission.Attributes) error {
	return errors.New("admission control is denying all modifications")
}

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error { return p.Admit(ctx, a) }
