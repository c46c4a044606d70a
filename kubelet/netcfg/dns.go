package netcfg

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Limits of resolv.conf that pods get, as validation and glibc have them.
const (
	maxServers     = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// DNSConfig is the cluster's and the host's part.
type DNSConfig struct {
	Servers    []string // of the cluster
	Domain     string   // cluster.local
	ResolvConf string   // path of the host's file; empty: none
}

// A Warning is an event about a pod's DNS.
type Warning struct{ Reason, Message string }

// DNS returns the resolver configuration of a pod.
func DNS(pod *corev1.Pod, c DNSConfig) (*runtimeapi.DNSConfig, []Warning, error) {
	var warnings []Warning
	policy := pod.Spec.DNSPolicy
	cluster := policy == corev1.DNSClusterFirstWithHostNet ||
		(policy == corev1.DNSClusterFirst || policy == "") && !pod.Spec.HostNetwork
	if cluster && len(c.Servers) == 0 {
		cluster = false
		warnings = append(warnings, Warning{"MissingClusterDNS", fmt.Sprintf(
			"pod: %q. kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
			pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", pod.Spec.DNSPolicy, corev1.DNSDefault)})
	}
	out := &runtimeapi.DNSConfig{}
	if policy != corev1.DNSNone {
		host, err := hostDNS(c.ResolvConf)
		if err != nil {
			return nil, warnings, err
		}
		out = host
	}
	if cluster {
		search := []string{pod.Namespace + ".svc." + c.Domain, "svc." + c.Domain, c.Domain}
		out.Searches = unique(append(search, out.Searches...))
		out.Servers = slices.Clone(c.Servers)
		out.Options = []string{"ndots:5"}
	}
	if extra := pod.Spec.DNSConfig; extra != nil {
		out.Servers = unique(append(out.Servers, extra.Nameservers...))
		out.Searches = unique(append(out.Searches, extra.Searches...))
		out.Options = mergeOptions(out.Options, extra.Options)
	}
	return limit(out, &warnings), warnings, nil
}

func limit(c *runtimeapi.DNSConfig, warnings *[]Warning) *runtimeapi.DNSConfig {
	if len(c.Servers) > maxServers {
		c.Servers = c.Servers[:maxServers]
		*warnings = append(*warnings, Warning{"DNSConfigForming", fmt.Sprintf(
			"Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: %s", strings.Join(c.Servers, " "))})
	}
	n, chars := 0, 0
	for _, s := range c.Searches {
		if n == maxSearches || chars+len(s) > maxSearchChars {
			break
		}
		chars += len(s) + 1
		n++
	}
	if n < len(c.Searches) {
		c.Searches = c.Searches[:n]
		*warnings = append(*warnings, Warning{"DNSConfigForming", fmt.Sprintf(
			"Search Line limits were exceeded, some search paths have been omitted, the applied search line is: %s", strings.Join(c.Searches, " "))})
	}
	return c
}

func hostDNS(path string) (*runtimeapi.DNSConfig, error) {
	if path == "" {
		return &runtimeapi.DNSConfig{}, nil
	}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return &runtimeapi.DNSConfig{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ParseResolvConf(f)
}

// ParseResolvConf reads a resolver configuration, resolv.conf(5).
func ParseResolvConf(r io.Reader) (*runtimeapi.DNSConfig, error) {
	c := &runtimeapi.DNSConfig{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if i := strings.IndexAny(line, "#;"); i >= 0 {
			line = line[:i]
		}
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		switch f[0] {
		case "nameserver":
			if len(f) >= 2 {
				c.Servers = append(c.Servers, f[1])
			}
		case "search", "domain":
			c.Searches = nil // the last line counts
			for _, s := range f[1:] {
				if s != "." {
					s = strings.TrimSuffix(s, ".")
				}
				c.Searches = append(c.Searches, s)
			}
		case "options":
			c.Options = append(c.Options, f[1:]...)
		}
	}
	return c, lines.Err()
}

func mergeOptions(options []string, extra []corev1.PodDNSConfigOption) []string {
	var names []string
	values := map[string]string{}
	set := func(name, full string) {
		if _, ok := values[name]; !ok {
			names = append(names, name)
		}
		values[name] = full
	}
	for _, o := range options {
		name, _, _ := strings.Cut(o, ":")
		set(name, o)
	}
	for _, o := range extra {
		full := o.Name
		if o.Value != nil && *o.Value != "" {
			full += ":" + *o.Value
		}
		set(o.Name, full)
	}
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, values[n])
	}
	return out
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
