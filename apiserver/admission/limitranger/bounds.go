package limitranger

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// each calls f for the amounts of a list, in the order of their names.
func each(list corev1.ResourceList, f func(corev1.ResourceName, resource.Quantity) error) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if err := f(name, list[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// bounds checks requests and limits against an item's minimum, maximum and ratio.
func bounds(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) []error {
	kind := item.Type
	errs := each(item.Min, func(name corev1.ResourceName, least resource.Quantity) error {
		return atLeast(kind, name, least, requests, limits)
	})
	errs = append(errs, each(item.Max, func(name corev1.ResourceName, most resource.Quantity) error {
		limit, limited := limits[name]
		request, requested := requests[name]
		switch {
		case !limited:
			return fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", name, kind, most.String())
		case limit.Cmp(most) > 0:
			return fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", name, kind, most.String(), limit.String())
		case requested && request.Cmp(most) > 0:
			return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, kind, most.String(), request.String())
		}
		return nil
	})...)
	return append(errs, each(item.MaxLimitRequestRatio, func(name corev1.ResourceName, most resource.Quantity) error {
		request, limit := requests[name], limits[name]
		switch {
		case request.IsZero():
			return fmt.Errorf("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, kind, most.String())
		case limit.IsZero():
			return fmt.Errorf("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, kind, most.String())
		}
		if ratio := limit.AsApproximateFloat64() / request.AsApproximateFloat64(); ratio > most.AsApproximateFloat64() {
			return fmt.Errorf("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, kind, most.String(), ratio)
		}
		return nil
	})...)
}

func atLeast(kind corev1.LimitType, name corev1.ResourceName, least resource.Quantity, requests, limits corev1.ResourceList) error {
	request, requested := requests[name]
	limit, limited := limits[name]
	switch {
	case !requested:
		return fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", name, kind, least.String())
	case request.Cmp(least) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but request is %s", name, kind, least.String(), request.String())
	case limited && limit.Cmp(least) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but limit is %s", name, kind, least.String(), limit.String())
	}
	return nil
}

// ofClaim checks what a claim requests; claims have no limits.
func ofClaim(requests corev1.ResourceList, item *corev1.LimitRangeItem) []error {
	kind := item.Type
	errs := each(item.Min, func(name corev1.ResourceName, least resource.Quantity) error {
		return atLeast(kind, name, least, requests, nil)
	})
	return append(errs, each(item.Max, func(name corev1.ResourceName, most resource.Quantity) error {
		request, requested := requests[name]
		switch {
		case !requested:
			return fmt.Errorf("maximum %s usage per %s is %s.  No request is specified", name, kind, most.String())
		case request.Cmp(most) > 0:
			return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, kind, most.String(), request.String())
		}
		return nil
	})...)
}
