package alwaysadmit

import "github.com/periplus/periplus/apiserver/admission"

// Name is the plug-in's.
const Name = "AlwaysAdmit"

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin { return plugin{} }

func (plugin) Name() string { return Name }
