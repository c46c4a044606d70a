package apiregistration

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var apiServiceHalves = kind.Split(func(obj *apiregistrationv1.APIService) (*apiregistrationv1.APIServiceSpec, *apiregistrationv1.APIServiceStatus) {
	return &obj.Spec, &obj.Status
})

func apiServices() *registry.Resource {
	s := apiServiceHalves.MainWithoutGeneration()
	s.DefaultFunc = func(service *apiregistrationv1.APIService) {
		if ref := service.Spec.Service; ref != nil && ref.Port == nil {
			port := int32(443)
			ref.Port = &port
		}
	}
	s.PrepareCreate = func(_ context.Context, service *apiregistrationv1.APIService) {
		apiServiceHalves.DropStatus(service)
		if service.Spec.Service == nil {
			service.Status.Conditions = []apiregistrationv1.APIServiceCondition{{
				Type:               apiregistrationv1.Available,
				Status:             apiregistrationv1.ConditionTrue,
				LastTransitionTime: metav1.Now(),
				Reason:             "Local",
				Message:            "Local APIServices are always available",
			}}
		}
	}
	return &registry.Resource{
		GVR:           version.WithResource("apiservices"),
		Kind:          "APIService",
		StoragePrefix: "apiregistration.k8s.io/apiservices",
		StoredAsJSON:  true,
		Singular:      "apiservice",
		Categories:    []string{"api-extensions"},
		New:           kind.Make[apiregistrationv1.APIService],
		NewList:       kind.Make[apiregistrationv1.APIServiceList],
		Strategy:      s,
		Status:        apiServiceHalves.StatusKeepingMeta(),
	}
}
