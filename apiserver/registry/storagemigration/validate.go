package storagemigration

import (
	"fmt"
	"strings"

	storagemigrationv1 "k8s.io/api/storagemigration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/validation"
)

func migration(m *storagemigrationv1.StorageVersionMigration) (errs field.ErrorList) {
	at, r := field.NewPath("spec", "resource"), m.Spec.Resource
	if r.Resource == "" {
		errs = append(errs, field.Required(at.Child("resource"), "resource is required to be set"))
	} else if bad := utilvalidation.IsDNS1035Label(r.Resource); len(bad) > 0 {
		errs = append(errs, field.Invalid(at.Child("resource"), r.Resource, strings.Join(bad, ",")))
	}
	if r.Group != "" {
		if bad := utilvalidation.IsDNS1123Subdomain(r.Group); len(bad) > 0 {
			errs = append(errs, field.Invalid(at.Child("group"), r.Group, strings.Join(bad, ",")))
		}
	}
	return errs
}

func migrationUpdate(m, old *storagemigrationv1.StorageVersionMigration) field.ErrorList {
	return append(migration(m), validation.Immutable(m.Spec, old.Spec, field.NewPath("spec"))...)
}

// migrationStatus checks that a migration runs once: the revision up to which it
// works stays, and what has ended does not begin again.
func migrationStatus(m, old *storagemigrationv1.StorageVersionMigration) (errs field.ErrorList) {
	at := field.NewPath("status")
	version, conditions := at.Child("resourceVersion"), at.Child("conditions")
	if v := m.Status.ResourceVersion; v != "" {
		if _, err := resourceversion.CompareResourceVersion(v, v); err != nil {
			errs = append(errs, field.Invalid(version, v, err.Error()))
		}
	}
	errs = append(errs, metav1validation.ValidateConditions(m.Status.Conditions, conditions)...)
	if before := old.Status.ResourceVersion; before != "" && before != m.Status.ResourceVersion {
		errs = append(errs, field.Invalid(version, m.Status.ResourceVersion, validation.ImmutableError))
	}
	is := func(m *storagemigrationv1.StorageVersionMigration, t storagemigrationv1.MigrationConditionType) bool {
		return apimeta.IsStatusConditionTrue(m.Status.Conditions, string(t))
	}
	if is(m, storagemigrationv1.MigrationSucceeded) && is(m, storagemigrationv1.MigrationFailed) {
		errs = append(errs, field.Invalid(conditions, m.Status.Conditions, "Both success and failed conditions cannot be true at the same time"))
	}
	for _, end := range []struct {
		t    storagemigrationv1.MigrationConditionType
		word string
	}{{storagemigrationv1.MigrationSucceeded, "Success"}, {storagemigrationv1.MigrationFailed, "Failed"}} {
		if is(old, end.t) && !is(m, end.t) {
			errs = append(errs, field.Invalid(conditions, m.Status.Conditions, fmt.Sprintf("%s condition cannot be set to false once it is true", end.word)))
		}
	}
	return errs
}
