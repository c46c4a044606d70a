package resource

import (
	"maps"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/registry/kind"
)

var (
	beta1 = resourcev1beta1.SchemeGroupVersion
	beta2 = resourcev1beta2.SchemeGroupVersion
)

// v1beta2 is v1 by another name. v1beta1 has no "exactly" around what a request
// wants, and has "basic" around what a device is.

func olderDeviceClass() []registry.Served {
	return []registry.Served{
		kind.Alike[resourcev1beta2.DeviceClass, resourcev1beta2.DeviceClassList, resourcev1.DeviceClass](beta2),
		kind.Alike[resourcev1beta1.DeviceClass, resourcev1beta1.DeviceClassList, resourcev1.DeviceClass](beta1),
	}
}

func olderResourceClaim() []registry.Served {
	spec := []string{"spec"}
	return []registry.Served{
		kind.Alike[resourcev1beta2.ResourceClaim, resourcev1beta2.ResourceClaimList, resourcev1.ResourceClaim](beta2),
		kind.Rearranged[resourcev1beta1.ResourceClaim, resourcev1beta1.ResourceClaimList, resourcev1.ResourceClaim](beta1,
			func(obj map[string]any) { wrapRequests(obj, spec) }, func(obj map[string]any) { unwrapRequests(obj, spec) }),
	}
}

func olderResourceClaimTemplate() []registry.Served {
	spec := []string{"spec", "spec"}
	return []registry.Served{
		kind.Alike[resourcev1beta2.ResourceClaimTemplate, resourcev1beta2.ResourceClaimTemplateList, resourcev1.ResourceClaimTemplate](beta2),
		kind.Rearranged[resourcev1beta1.ResourceClaimTemplate, resourcev1beta1.ResourceClaimTemplateList, resourcev1.ResourceClaimTemplate](beta1,
			func(obj map[string]any) { wrapRequests(obj, spec) }, func(obj map[string]any) { unwrapRequests(obj, spec) }),
	}
}

func olderResourceSlice() []registry.Served {
	return []registry.Served{
		kind.Alike[resourcev1beta2.ResourceSlice, resourcev1beta2.ResourceSliceList, resourcev1.ResourceSlice](beta2),
		kind.Rearranged[resourcev1beta1.ResourceSlice, resourcev1beta1.ResourceSliceList, resourcev1.ResourceSlice](beta1, unwrapDevices, wrapDevices),
	}
}

// wrapRequests puts what a request wants, unless it has alternatives, into "exactly".
func wrapRequests(obj map[string]any, spec []string) {
	for _, r := range each(obj, append(append([]string(nil), spec...), "devices"), "requests") {
		if _, alternatives := r["firstAvailable"]; alternatives {
			continue
		}
		exactly := maps.Clone(r)
		delete(exactly, "name")
		name, named := r["name"]
		clear(r)
		if r["exactly"] = exactly; named {
			r["name"] = name
		}
	}
}

func unwrapRequests(obj map[string]any, spec []string) {
	for _, r := range each(obj, append(append([]string(nil), spec...), "devices"), "requests") {
		if exactly, ok := r["exactly"].(map[string]any); ok {
			delete(r, "exactly")
			maps.Copy(r, exactly)
		}
	}
}

// unwrapDevices takes what a device is out of "basic".
func unwrapDevices(obj map[string]any) {
	for _, d := range each(obj, []string{"spec"}, "devices") {
		if basic, ok := d["basic"].(map[string]any); ok {
			delete(d, "basic")
			maps.Copy(d, basic)
		}
	}
}

func wrapDevices(obj map[string]any) {
	for _, d := range each(obj, []string{"spec"}, "devices") {
		basic := maps.Clone(d)
		delete(basic, "name")
		name := d["name"]
		clear(d)
		d["name"], d["basic"] = name, basic
	}
}

// each returns the objects in a list below a path.
func each(obj map[string]any, path []string, list string) []map[string]any {
	for _, name := range path {
		obj, _ = obj[name].(map[string]any)
	}
	items, _ := obj[list].([]any)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
