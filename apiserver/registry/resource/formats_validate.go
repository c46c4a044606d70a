package resource

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// These are rules that upstream generates from the types of the newest version; they
// say some things in other words than the rules written by hand.

func extendedResource(name *string, at *field.Path) field.ErrorList {
	return validate.ExtendedResourceName(context.Background(), operation.Operation{}, at, name, nil)
}

func fullyQualified(name *resourcev1.FullyQualifiedName, at *field.Path) field.ErrorList {
	return validate.ResourceFullyQualifiedName(context.Background(), operation.Operation{}, at, name, nil)
}

func uid[T ~string](id *T, at *field.Path) field.ErrorList {
	return validate.UUID(context.Background(), operation.Operation{}, at, id, nil)
}

// className is the rule for names of classes.
func className(name string, prefix bool) []string {
	if prefix {
		return apivalidation.NameIsDNSSubdomain(name, prefix)
	}
	return content.IsDNS1123Subdomain(name)
}
