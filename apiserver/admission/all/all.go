package all

import (
	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/certificateapproval"
	"github.com/periplus/periplus/apiserver/admission/certificatesigning"
	"github.com/periplus/periplus/apiserver/admission/certificatesubjectrestriction"
	"github.com/periplus/periplus/apiserver/admission/clustertrustbundleattest"
	"github.com/periplus/periplus/apiserver/admission/defaultingressclass"
	"github.com/periplus/periplus/apiserver/admission/defaultstorageclass"
	"github.com/periplus/periplus/apiserver/admission/defaulttolerationseconds"
	"github.com/periplus/periplus/apiserver/admission/limitranger"
	"github.com/periplus/periplus/apiserver/admission/namespacelifecycle"
	"github.com/periplus/periplus/apiserver/admission/noderestriction"
	"github.com/periplus/periplus/apiserver/admission/persistentvolumeclaimresize"
	"github.com/periplus/periplus/apiserver/admission/podsecurity"
	mutatingpolicy "github.com/periplus/periplus/apiserver/admission/policy/mutating"
	validatingpolicy "github.com/periplus/periplus/apiserver/admission/policy/validating"
	"github.com/periplus/periplus/apiserver/admission/priority"
	"github.com/periplus/periplus/apiserver/admission/resourcequota"
	"github.com/periplus/periplus/apiserver/admission/runtimeclass"
	"github.com/periplus/periplus/apiserver/admission/serviceaccount"
	"github.com/periplus/periplus/apiserver/admission/storageobjectinuseprotection"
	"github.com/periplus/periplus/apiserver/admission/taintnodesbycondition"
	"github.com/periplus/periplus/apiserver/admission/webhook/mutating"
	"github.com/periplus/periplus/apiserver/admission/webhook/validating"
)

// Objects is what the plug-ins read, and charge.
type Objects interface {
	mutatingpolicy.Objects
	resourcequota.Objects
}

// Chain returns the plug-ins that o wants. All of them are on unless they are named.
func Chain(objects Objects, o Options) (admission.Chain, error) {
	standards, err := podsecurity.New(objects, o.Configurations[podsecurity.Name])
	if err != nil {
		return nil, err
	}
	chain := admission.Chain{
		namespacelifecycle.New(objects),
		limitranger.New(objects),
		serviceaccount.New(objects),
		noderestriction.New(objects),
		taintnodesbycondition.New(),
		standards,
		priority.New(objects),
		defaulttolerationseconds.New(),
		defaultstorageclass.New(objects),
		storageobjectinuseprotection.New(),
		persistentvolumeclaimresize.New(objects),
		runtimeclass.New(objects),
		certificateapproval.New(),
		certificatesigning.New(),
		clustertrustbundleattest.New(),
		certificatesubjectrestriction.New(),
		defaultingressclass.New(objects),
		mutatingpolicy.New(objects),
		mutating.New(objects),
		validatingpolicy.New(objects),
		validating.New(objects),
		resourcequota.New(objects),
	}
	if err := o.validate(chain); err != nil {
		return nil, err
	}
	return chain.Without(o.Disable), nil
}
