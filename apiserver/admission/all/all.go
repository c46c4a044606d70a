package all

import (
	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/certificatesubjectrestriction"
	"github.com/periplus/periplus/apiserver/admission/defaultingressclass"
	"github.com/periplus/periplus/apiserver/admission/defaultstorageclass"
	"github.com/periplus/periplus/apiserver/admission/defaulttolerationseconds"
	"github.com/periplus/periplus/apiserver/admission/limitranger"
	"github.com/periplus/periplus/apiserver/admission/namespacelifecycle"
	"github.com/periplus/periplus/apiserver/admission/noderestriction"
	"github.com/periplus/periplus/apiserver/admission/persistentvolumeclaimresize"
	"github.com/periplus/periplus/apiserver/admission/priority"
	"github.com/periplus/periplus/apiserver/admission/resourcequota"
	"github.com/periplus/periplus/apiserver/admission/serviceaccount"
	"github.com/periplus/periplus/apiserver/admission/storageobjectinuseprotection"
	"github.com/periplus/periplus/apiserver/admission/validatingpolicy"
	"github.com/periplus/periplus/apiserver/admission/webhook/mutating"
	"github.com/periplus/periplus/apiserver/admission/webhook/validating"
)

// Objects is what the plug-ins read, and charge.
type Objects interface {
	validatingpolicy.Objects
	resourcequota.Objects
}

// Chain returns all plug-ins.
func Chain(objects Objects) admission.Chain {
	return admission.Chain{
		namespacelifecycle.New(objects),
		limitranger.New(objects),
		serviceaccount.New(objects),
		noderestriction.New(objects),
		priority.New(objects),
		defaulttolerationseconds.New(),
		defaultstorageclass.New(objects),
		defaultingressclass.New(objects),
		storageobjectinuseprotection.New(),
		persistentvolumeclaimresize.New(objects),
		certificatesubjectrestriction.New(),
		mutating.New(objects),
		validatingpolicy.New(objects),
		validating.New(objects),
		resourcequota.New(objects),
	}
}
