package resource

import (
	resourcev1 "k8s.io/api/resource/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/periplus/periplus/apiserver/validation"
)

// deviceStatuses checks what drivers tell of devices: only of those that the claim has.
func deviceStatuses(s *resourcev1.ResourceClaimStatus, at *field.Path) field.ErrorList {
	has := allocated(s)
	key := func(d resourcev1.AllocatedDeviceStatus) string { return sharedID(&d).String() }
	return list(s.Devices, -1, key, at, func(d *resourcev1.AllocatedDeviceStatus, at *field.Path) field.ErrorList {
		errs := validation.CSIDriverName(d.Driver, at.Child("driver"))
		errs = append(errs, poolName(d.Pool, at.Child("pool"))...)
		errs = append(errs, validation.DNSLabel(d.Device, at.Child("device"))...)
		errs = append(errs, uid(d.ShareID, at.Child("shareID"))...)
		if id := sharedID(d); !has[id] {
			errs = append(errs, field.Invalid(at, id, "must be an allocated device in the claim"))
		}
		if p := at.Child("conditions"); len(d.Conditions) > resourcev1.AllocatedDeviceStatusMaxConditions {
			errs = append(errs, field.TooMany(p, len(d.Conditions), resourcev1.AllocatedDeviceStatusMaxConditions))
		}
		errs = append(errs, metav1validation.ValidateConditions(d.Conditions, at.Child("conditions"))...)
		if d.Data != nil && len(d.Data.Raw) > 0 {
			errs = append(errs, object(*d.Data, false, resourcev1.AllocatedDeviceStatusDataMaxLength, at.Child("data"))...)
		}
		return append(errs, networkData(d.NetworkData, at.Child("networkData"))...)
	})
}

// allocated is the devices that a claim has.
func allocated(s *resourcev1.ResourceClaimStatus) map[structured.SharedDeviceID]bool {
	has := map[structured.SharedDeviceID]bool{}
	if s.Allocation != nil {
		for i := range s.Allocation.Devices.Results {
			r := &s.Allocation.Devices.Results[i]
			has[structured.MakeSharedDeviceID(structured.MakeDeviceID(r.Driver, r.Pool, r.Device), r.ShareID)] = true
		}
	}
	return has
}

func sharedID(d *resourcev1.AllocatedDeviceStatus) structured.SharedDeviceID {
	return structured.MakeSharedDeviceID(structured.MakeDeviceID(d.Driver, d.Pool, d.Device), (*types.UID)(d.ShareID))
}

func networkData(d *resourcev1.NetworkDeviceData, at *field.Path) field.ErrorList {
	if d == nil {
		return nil
	}
	var errs field.ErrorList
	if len(d.InterfaceName) > resourcev1.NetworkDeviceDataInterfaceNameMaxLength {
		errs = append(errs, field.TooLong(at.Child("interfaceName"), "", resourcev1.NetworkDeviceDataInterfaceNameMaxLength))
	}
	if len(d.HardwareAddress) > resourcev1.NetworkDeviceDataHardwareAddressMaxLength {
		errs = append(errs, field.TooLong(at.Child("hardwareAddress"), "", resourcev1.NetworkDeviceDataHardwareAddressMaxLength))
	}
	return append(errs, list(d.IPs, resourcev1.NetworkDeviceDataMaxIPs, text, at.Child("ips"), func(ip *string, at *field.Path) field.ErrorList {
		return utilvalidation.IsValidInterfaceAddress(at, *ip)
	})...)
}
