package inject

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Annotations of a pod that change its sidecar.
const (
	annotationIncludeInbound  = "traffic.sidecar.istio.io/includeInboundPorts"
	annotationExcludeInbound  = "traffic.sidecar.istio.io/excludeInboundPorts"
	annotationExcludeOutbound = "traffic.sidecar.istio.io/excludeOutboundPorts"
	annotationIncludeRanges   = "traffic.sidecar.istio.io/includeOutboundIPRanges"
	annotationExcludeRanges   = "traffic.sidecar.istio.io/excludeOutboundIPRanges"
	annotationRewriteProbes   = "sidecar.istio.io/rewriteAppHTTPProbers"
	annotationLogLevel        = "sidecar.istio.io/logLevel"
	annotationAccessLog       = "periplus.io/access-log"
	annotationProxyCPU        = "sidecar.istio.io/proxyCPU"
	annotationProxyCPULimit   = "sidecar.istio.io/proxyCPULimit"
	annotationProxyMem        = "sidecar.istio.io/proxyMemory"
	annotationProxyMemLimit   = "sidecar.istio.io/proxyMemoryLimit"
)

// options is what a pod's annotations ask for.
type options struct {
	includeInbound  string // "*" or ports
	excludeInbound  string
	excludeOutbound string
	includeRanges   string // "*" or prefixes
	excludeRanges   string
	rewriteProbes   bool
	logLevel        string
	accessLog       string
	resources       corev1.ResourceRequirements
}

// readOptions reads and checks the annotations.
func readOptions(annotations map[string]string) (options, error) {
	o := options{includeInbound: "*", includeRanges: "*", rewriteProbes: true, logLevel: "warning"}
	o.resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
	}
	var err error
	check := func(key string, into *string, ok func(string) error) {
		v, there := annotations[key]
		if !there || err != nil {
			return
		}
		if e := ok(v); e != nil {
			err = fmt.Errorf("injection failed due to invalid annotation %s: %w", key, e)
			return
		}
		*into = v
	}
	check(annotationIncludeInbound, &o.includeInbound, orAll(ports))
	check(annotationExcludeInbound, &o.excludeInbound, ports)
	check(annotationExcludeOutbound, &o.excludeOutbound, ports)
	check(annotationIncludeRanges, &o.includeRanges, orAll(ranges))
	check(annotationExcludeRanges, &o.excludeRanges, ranges)
	check(annotationLogLevel, &o.logLevel, func(string) error { return nil })
	check(annotationAccessLog, &o.accessLog, func(v string) error {
		if v != "" && v != "text" && v != "json" {
			return fmt.Errorf("%q must be text or json", v)
		}
		return nil
	})
	var rewrite string
	check(annotationRewriteProbes, &rewrite, func(v string) error { _, err := strconv.ParseBool(v); return err })
	if rewrite != "" {
		o.rewriteProbes, _ = strconv.ParseBool(rewrite) // checked above
	}
	for key, name := range map[string]corev1.ResourceName{annotationProxyCPU: corev1.ResourceCPU, annotationProxyMem: corev1.ResourceMemory} {
		quantity(annotations, key, name, o.resources.Requests, &err)
	}
	for key, name := range map[string]corev1.ResourceName{annotationProxyCPULimit: corev1.ResourceCPU, annotationProxyMemLimit: corev1.ResourceMemory} {
		if annotations[key] != "" && o.resources.Limits == nil {
			o.resources.Limits = corev1.ResourceList{}
		}
		quantity(annotations, key, name, o.resources.Limits, &err)
	}
	return o, err
}

func quantity(annotations map[string]string, key string, name corev1.ResourceName, into corev1.ResourceList, err *error) {
	v := annotations[key]
	if v == "" || *err != nil {
		return
	}
	q, e := resource.ParseQuantity(v)
	if e != nil {
		*err = fmt.Errorf("injection failed due to invalid annotation %s: %w", key, e)
		return
	}
	into[name] = q
}

func orAll(f func(string) error) func(string) error {
	return func(v string) error {
		if v == "*" {
			return nil
		}
		return f(v)
	}
}

// ports checks a list of ports separated by commas.
func ports(v string) error {
	for _, p := range list(v) {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("port %q must be a number between 1 and 65535", p)
		}
	}
	return nil
}

// ranges checks a list of prefixes separated by commas.
func ranges(v string) error {
	for _, p := range list(v) {
		if _, err := netip.ParsePrefix(p); err != nil {
			return fmt.Errorf("invalid CIDR address: %s", p)
		}
	}
	return nil
}

func list(v string) []string {
	var out []string
	for p := range strings.SplitSeq(v, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
