package all

import (
	"k8s.io/utils/clock"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/alwaysadmit"
	"github.com/periplus/periplus/apiserver/admission/alwaysdeny"
	"github.com/periplus/periplus/apiserver/admission/alwayspullimages"
	"github.com/periplus/periplus/apiserver/admission/certificateapproval"
	"github.com/periplus/periplus/apiserver/admission/certificatesigning"
	"github.com/periplus/periplus/apiserver/admission/certificatesubjectrestriction"
	"github.com/periplus/periplus/apiserver/admission/clustertrustbundleattest"
	"github.com/periplus/periplus/apiserver/admission/defaultingressclass"
	"github.com/periplus/periplus/apiserver/admission/defaultstorageclass"
	"github.com/periplus/periplus/apiserver/admission/defaulttolerationseconds"
	"github.com/periplus/periplus/apiserver/admission/denyserviceexternalips"
	"github.com/periplus/periplus/apiserver/admission/eventratelimit"
	"github.com/periplus/periplus/apiserver/admission/extendedresourcetoleration"
	"github.com/periplus/periplus/apiserver/admission/imagepolicywebhook"
	"github.com/periplus/periplus/apiserver/admission/limitpodhardantiaffinitytopology"
	"github.com/periplus/periplus/apiserver/admission/limitranger"
	"github.com/periplus/periplus/apiserver/admission/namespaceautoprovision"
	"github.com/periplus/periplus/apiserver/admission/namespaceexists"
	"github.com/periplus/periplus/apiserver/admission/namespacelifecycle"
	"github.com/periplus/periplus/apiserver/admission/nodedeclaredfeaturevalidator"
	"github.com/periplus/periplus/apiserver/admission/noderestriction"
	"github.com/periplus/periplus/apiserver/admission/ownerreferencespermissionenforcement"
	"github.com/periplus/periplus/apiserver/admission/persistentvolumeclaimresize"
	"github.com/periplus/periplus/apiserver/admission/podnodeselector"
	"github.com/periplus/periplus/apiserver/admission/podresizevalidator"
	"github.com/periplus/periplus/apiserver/admission/podsecurity"
	"github.com/periplus/periplus/apiserver/admission/podtolerationrestriction"
	"github.com/periplus/periplus/apiserver/admission/podtopologylabels"
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

// Objects is what the plug-ins read, charge and make.
type Objects interface {
	mutatingpolicy.Objects
	resourcequota.Objects
	namespaceautoprovision.Objects
}

// An entry is a plug-in that the server knows.
type entry struct {
	name string
	// off plug-ins are only there when they are named.
	off bool
	new func(objects Objects, config []byte) (admission.Plugin, error)
}

// plugins are all there are, in upstream's order.
func plugins() []entry {
	return []entry{
		{alwaysadmit.Name, true, plain(alwaysadmit.New)},
		{namespaceautoprovision.Name, true, reads(namespaceautoprovision.New)},
		{"NamespaceLifecycle", false, reads(namespacelifecycle.New)},
		{namespaceexists.Name, true, reads(namespaceexists.New)},
		{limitpodhardantiaffinitytopology.Name, true, plain(limitpodhardantiaffinitytopology.New)},
		{"LimitRanger", false, reads(limitranger.New)},
		{"ServiceAccount", false, reads(serviceaccount.New)},
		{"NodeRestriction", false, reads(noderestriction.New)}, // upstream: off, and kubeadm turns it on
		{"TaintNodesByCondition", false, plain(taintnodesbycondition.New)},
		{alwayspullimages.Name, true, plain(alwayspullimages.New)},
		{imagepolicywebhook.Name, true, configured(imagepolicywebhook.New)},
		{podsecurity.Name, false, both(podsecurity.New)},
		{podnodeselector.Name, true, both(podnodeselector.New)},
		{"Priority", false, reads(priority.New)},
		{"DefaultTolerationSeconds", false, plain(defaulttolerationseconds.New)},
		{podtolerationrestriction.Name, true, both(podtolerationrestriction.New)},
		{eventratelimit.Name, true, configured(func(config []byte) (admission.Plugin, error) { return eventratelimit.New(config, clock.RealClock{}) })},
		{extendedresourcetoleration.Name, true, plain(extendedresourcetoleration.New)},
		{"DefaultStorageClass", false, reads(defaultstorageclass.New)},
		{"StorageObjectInUseProtection", false, plain(storageobjectinuseprotection.New)},
		{ownerreferencespermissionenforcement.Name, true, reads(ownerreferencespermissionenforcement.New)},
		{"PersistentVolumeClaimResize", false, reads(persistentvolumeclaimresize.New)},
		{"RuntimeClass", false, reads(runtimeclass.New)},
		{"CertificateApproval", false, plain(certificateapproval.New)},
		{"CertificateSigning", false, plain(certificatesigning.New)},
		{"ClusterTrustBundleAttest", false, plain(clustertrustbundleattest.New)},
		{"CertificateSubjectRestriction", false, plain(certificatesubjectrestriction.New)},
		{"DefaultIngressClass", false, reads(defaultingressclass.New)},
		{denyserviceexternalips.Name, true, plain(denyserviceexternalips.New)},
		{podtopologylabels.Name, false, reads(podtopologylabels.New)},
		{nodedeclaredfeaturevalidator.Name, false, reads(nodedeclaredfeaturevalidator.New)},
		{podresizevalidator.Name, false, reads(podresizevalidator.New)},
		{mutatingpolicy.Name, false, reads(mutatingpolicy.New)},
		{"MutatingAdmissionWebhook", false, reads(mutating.New)},
		{"ValidatingAdmissionPolicy", false, reads(validatingpolicy.New)},
		{"ValidatingAdmissionWebhook", false, reads(validating.New)},
		{resourcequota.Name, false, both(resourcequota.New)},
		{alwaysdeny.Name, true, plain(alwaysdeny.New)},
	}
}

// Chain returns the plug-ins that o wants.
func Chain(objects Objects, o Options) (admission.Chain, error) {
	known := plugins()
	if err := o.validate(known); err != nil {
		return nil, err
	}
	var chain admission.Chain
	for _, e := range known {
		if !o.wants(e) {
			continue
		}
		p, err := e.new(objects, o.Configurations[e.name])
		if err != nil {
			return nil, err
		}
		chain = append(chain, p)
	}
	return chain, nil
}
