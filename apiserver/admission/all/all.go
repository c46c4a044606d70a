package all

import (
	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/certificatesubjectrestriction"
	"github.com/periplus/periplus/apiserver/admission/defaulttolerationseconds"
	"github.com/periplus/periplus/apiserver/admission/namespacelifecycle"
	"github.com/periplus/periplus/apiserver/admission/noderestriction"
	"github.com/periplus/periplus/apiserver/admission/priority"
	"github.com/periplus/periplus/apiserver/admission/serviceaccount"
	"github.com/periplus/periplus/apiserver/registry"
)

// Chain returns all plug-ins.
func Chain(objects registry.Reader) admission.Chain {
	return admission.Chain{
		namespacelifecycle.New(objects),
		serviceaccount.New(objects),
		noderestriction.New(objects),
		priority.New(objects),
		defaulttolerationseconds.New(),
		certificatesubjectrestriction.New(),
	}
}
