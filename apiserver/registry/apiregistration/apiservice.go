package apiregistration

import (
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var apiServiceHalves = kind.Split(func(obj *apiregistrationv1.APIService) (*apiregistrationv1.APIServiceSpec, *apiregistrationv1.APIServiceStatus) {
	return &obj.Spec, &obj.Status
})

func apiServices() *registry.Resource {
	s := apiServiceHalves.MainWithoutGeneration()
	return &registry.Resource{
		GVR:        version.WithResource("apiservices"),
		Kind:       "APIService",
		Singular:   "apiservice",
		Categories: []string{"api-extensions"},
		New:        kind.Make[apiregistrationv1.APIService],
		NewList:    kind.Make[apiregistrationv1.APIServiceList],
		Strategy:   s,
		Status:     apiServiceHalves.StatusKeepingMeta(),
	}
}
