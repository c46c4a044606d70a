package apiextensions

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var customResourceDefinitionHalves = kind.Split(func(obj *apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinitionSpec, *apiextensionsv1.CustomResourceDefinitionStatus) {
	return &obj.Spec, &obj.Status
})

func customResourceDefinitions() *registry.Resource {
	s := customResourceDefinitionHalves.Main()
	s.DefaultFunc = defaultCRD
	s.PrepareCreate = func(_ context.Context, crd *apiextensionsv1.CustomResourceDefinition) {
		customResourceDefinitionHalves.DropStatus(crd)
		crd.Generation = 1
		addStoredVersion(crd)
	}
	s.PrepareUpdate = func(_ context.Context, crd, old *apiextensionsv1.CustomResourceDefinition) {
		customResourceDefinitionHalves.KeepStatus(crd, old)
		crd.Status.StoredVersions = slices.Clone(crd.Status.StoredVersions)
		customResourceDefinitionHalves.BumpGeneration(crd, old)
		addStoredVersion(crd)
	}
	s.ValidateCreate = func(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
		in, errs := internalCRD(crd)
		if errs != nil {
			return errs
		}
		return crdvalidation.ValidateCustomResourceDefinition(ctx, in)
	}
	s.ValidateChange = func(ctx context.Context, crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
		in, errs := internalCRD(crd)
		before, oldErrs := internalCRD(old)
		if errs = append(errs, oldErrs...); len(errs) > 0 {
			return errs
		}
		return crdvalidation.ValidateCustomResourceDefinitionUpdate(ctx, in, before)
	}
	s.WarningsFunc = func(_ context.Context, crd, old *apiextensionsv1.CustomResourceDefinition) []string {
		return listWarnings(crd, old)
	}
	s.Fixed = registry.Traits{NoUnconditionalUpdate: true}
	status := customResourceDefinitionHalves.Status()
	status.ValidateChange = func(ctx context.Context, crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
		in, errs := internalCRD(crd)
		before, oldErrs := internalCRD(old)
		if errs = append(errs, oldErrs...); len(errs) > 0 {
			return errs
		}
		return crdvalidation.ValidateUpdateCustomResourceDefinitionStatus(ctx, in, before)
	}
	return &registry.Resource{
		GVR:           version.WithResource("customresourcedefinitions"),
		Kind:          "CustomResourceDefinition",
		Singular:      "customresourcedefinition",
		ShortNames:    []string{"crd", "crds"},
		Categories:    []string{"api-extensions"},
		AlsoStored:    []registry.Served{storedByUpstream()},
		New:           kind.Make[apiextensionsv1.CustomResourceDefinition],
		NewList:       kind.Make[apiextensionsv1.CustomResourceDefinitionList],
		StoragePrefix: "apiextensions.k8s.io/customresourcedefinitions",
		StoredAsJSON:  true,
		Strategy:      s,
		Status:        status,
		Marked:        markCRD,
	}
}

func defaultCRD(crd *apiextensionsv1.CustomResourceDefinition) {
	apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	if c := crd.Spec.Conversion; c != nil && c.Webhook != nil && c.Webhook.ClientConfig != nil && c.Webhook.ClientConfig.Service != nil {
		apiextensionsv1.SetDefaults_ServiceReference(c.Webhook.ClientConfig.Service)
	}
}

// internalCRD returns the form that upstream's validation takes.
func internalCRD(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, field.ErrorList) {
	out := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), out, nil); err != nil {
		return nil, field.ErrorList{field.InternalError(field.NewPath("spec"), fmt.Errorf("the definition cannot be validated: %w", err))}
	}
	return out, nil
}

// addStoredVersion notes the storage version as one that objects may be stored in.
func addStoredVersion(crd *apiextensionsv1.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(crd.Status.StoredVersions, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
	}
}

// markCRD holds a definition until its objects have been deleted.
func markCRD(obj runtime.Object) {
	crd := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		crd.Finalizers = append(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue, Reason: "InstanceDeletionPending",
		Message: "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
	})
}

// listWarnings tells of sets whose items cannot be told apart by server-side apply.
func listWarnings(crd, old *apiextensionsv1.CustomResourceDefinition) []string {
	found := unsettableItems(crd)
	if old != nil {
		found = found.Difference(unsettableItems(old))
	}
	return sets.List(found)
}

func unsettableItems(crd *apiextensionsv1.CustomResourceDefinition) sets.Set[string] {
	out := sets.New[string]()
	in, errs := internalCRD(crd)
	if errs != nil {
		return out
	}
	check := func(s *apiextensions.JSONSchemaProps) bool {
		if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil {
			if t := s.Items.Schema.Type; t == "object" || t == "array" {
				out.Insert(fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", t))
			}
		}
		return false
	}
	if v := in.Spec.Validation; v != nil && v.OpenAPIV3Schema != nil {
		crdvalidation.SchemaHas(v.OpenAPIV3Schema, check)
	}
	for _, v := range in.Spec.Versions {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			crdvalidation.SchemaHas(v.Schema.OpenAPIV3Schema, check)
		}
	}
	return out
}
