package netcfg

import (
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Hostname returns a pod's host name and its domain, empty without a subdomain.
// A name that is too long for the kernel is cut to 63 characters.
func Hostname(pod *corev1.Pod, clusterDomain string) (host, domain string) {
	if o := pod.Spec.HostnameOverride; o != nil && *o != "" {
		return *o, ""
	}
	host = pod.Spec.Hostname
	if host == "" {
		host = pod.Name
		if len(host) > 63 {
			host = strings.TrimRight(host[:63], "-.")
		}
	}
	if pod.Spec.Subdomain != "" {
		domain = pod.Spec.Subdomain + "." + pod.Namespace + ".svc." + clusterDomain
	}
	return host, domain
}

// Hosts returns the content of a pod's /etc/hosts. On the host network it starts
// with the host's own file.
func Hosts(pod *corev1.Pod, ips []string, host, domain, hostFile string) (string, error) {
	var b strings.Builder
	if pod.Spec.HostNetwork {
		own, err := os.ReadFile(hostFile)
		if err != nil && !os.IsNotExist(err) {
			return "", err
		}
		b.WriteString("# Kubernetes-managed hosts file (host network).\n")
		b.Write(own)
	} else {
		b.WriteString("# Kubernetes-managed hosts file.\n" +
			"127.0.0.1\tlocalhost\n" +
			"::1\tlocalhost ip6-localhost ip6-loopback\n" +
			"fe00::0\tip6-localnet\n" +
			"fe00::0\tip6-mcastprefix\n" +
			"fe00::1\tip6-allnodes\n" +
			"fe00::2\tip6-allrouters\n")
		for _, ip := range ips {
			b.WriteString(ip)
			if domain != "" {
				b.WriteString("\t" + host + "." + domain)
			}
			b.WriteString("\t" + host + "\n")
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		b.WriteString("\n# Entries added by HostAliases.\n")
		for _, a := range pod.Spec.HostAliases {
			b.WriteString(a.IP + "\t" + strings.Join(a.Hostnames, "\t") + "\n")
		}
	}
	return b.String(), nil
}
