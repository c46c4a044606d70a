package validation

import (
	"path"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	fileModeError   = "must be a number between 0 and 0777 (octal), both inclusive"
	notIntegerError = "must be an integer"
	// ImmutableError is what a change to an immutable field is answered with.
	ImmutableError = apivalidation.FieldImmutableErrorMsg
)

// Immutable refuses a change.
func Immutable(value, old any, path *field.Path) field.ErrorList {
	return apivalidation.ValidateImmutableField(value, old, path)
}

// Nonnegative refuses values below zero.
func Nonnegative(value int64, path *field.Path) field.ErrorList {
	return apivalidation.ValidateNonnegativeField(value, path)
}

// Positive refuses zero and values below.
func Positive(value int64, path *field.Path) field.ErrorList {
	if value <= 0 {
		return field.ErrorList{field.Invalid(path, value, "must be greater than zero").WithOrigin("minimum")}
	}
	return nil
}

// DNSLabel checks an RFC 1123 label.
func DNSLabel(value string, path *field.Path) field.ErrorList {
	return messages(validation.IsDNS1123Label(value), value, path)
}

// DNSSubdomain checks an RFC 1123 subdomain.
func DNSSubdomain(value string, path *field.Path) field.ErrorList {
	return messages(validation.IsDNS1123Subdomain(value), value, path)
}

// ConfigMapKey checks a key of a ConfigMap or Secret.
func ConfigMapKey(value string, path *field.Path) field.ErrorList {
	return messages(validation.IsConfigMapKey(value), value, path)
}

// QualifiedName checks a name with an optional DNS prefix, as in "example.com/name".
func QualifiedName(value string, path *field.Path) field.ErrorList {
	return messages(validation.IsQualifiedName(value), value, path)
}

func messages(list []string, value any, path *field.Path) field.ErrorList {
	var errs errorList
	errs.invalidAll(path, value, list)
	return errs.list
}

// PortNumOrName checks a port number or the name of a port.
func PortNumOrName(port intstr.IntOrString, path *field.Path) field.ErrorList {
	if port.Type == intstr.String {
		return messages(validation.IsValidPortName(port.StrVal), port.StrVal, path)
	}
	return messages(validation.IsValidPortNum(port.IntValue()), port.IntValue(), path)
}

// PositiveIntOrPercent checks a number or a percentage, neither below zero.
func PositiveIntOrPercent(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if value.Type == intstr.String {
		return messages(validation.IsValidPercent(value.StrVal), value, path)
	}
	return Nonnegative(int64(value.IntValue()), path)
}

// NotMoreThan100Percent refuses percentages above 100.
func NotMoreThan100Percent(value intstr.IntOrString, path *field.Path) field.ErrorList {
	if percent, ok := percentOf(value); ok && percent > 100 {
		return field.ErrorList{field.Invalid(path, value, "must not be greater than 100%")}
	}
	return nil
}

// IntOrPercent returns the number of a percentage or of an integer.
func IntOrPercent(value intstr.IntOrString) int {
	if percent, ok := percentOf(value); ok {
		return percent
	}
	return value.IntValue()
}

func percentOf(value intstr.IntOrString) (int, bool) {
	if value.Type != intstr.String || len(validation.IsValidPercent(value.StrVal)) > 0 {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(value.StrVal, "%"))
	return n, err == nil
}

// LegacyIP checks an address field; old lists values that were stored before
// the rules became strict and that may stay.
func LegacyIP(path *field.Path, value string, old []string) field.ErrorList {
	return validation.IsValidIPForLegacyField(path, value, true, old)
}

// LegacyCIDR is LegacyIP for address ranges.
func LegacyCIDR(path *field.Path, value string, old []string) field.ErrorList {
	return validation.IsValidCIDRForLegacyField(path, value, true, old)
}

// relativePath refuses absolute paths and paths that leave their directory.
func relativePath(value string, at *field.Path) field.ErrorList {
	var errs errorList
	if path.IsAbs(value) {
		errs.invalid(at, value, "must be a relative path")
	}
	errs.add(noBacksteps(value, at)...)
	return errs.list
}

func noBacksteps(value string, at *field.Path) field.ErrorList {
	for part := range strings.SplitSeq(value, "/") {
		if part == ".." {
			return field.ErrorList{field.Invalid(at, value, "must not contain '..'")}
		}
	}
	return nil
}

// volumePath checks the path of a file in a volume that the kubelet writes
// atomically: names that begin with ".." are its own.
func volumePath(value string, at *field.Path) field.ErrorList {
	errs := relativePath(value, at)
	if strings.HasPrefix(value, "..") && !strings.HasPrefix(value, "../") {
		errs = append(errs, field.Invalid(at, value, "must not start with '..'"))
	}
	return errs
}

func fileMode(e *errorList, mode *int32, at *field.Path, name string) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		e.invalid(at.Child(name), *mode, fileModeError)
	}
}
