package netcfg_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/kubelet/netcfg"
)

func TestDNS(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("# host\nnameserver 192.0.2.1\nsearch example.com.\noptions ndots:2 rotate\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	value := "3"
	extra := &corev1.PodDNSConfig{Nameservers: []string{"192.0.2.9"}, Searches: []string{"my.domain"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: &value}}}
	const inCluster = "ns.svc.cluster.local svc.cluster.local cluster.local example.com"
	for _, c := range []struct {
		policy corev1.DNSPolicy
		host   bool
		extra  *corev1.PodDNSConfig
		want   string
	}{
		{corev1.DNSClusterFirst, false, nil, "10.43.0.10|" + inCluster + "|ndots:5"},
		{corev1.DNSClusterFirst, true, nil, "192.0.2.1|example.com|ndots:2 rotate"},
		{corev1.DNSClusterFirstWithHostNet, true, nil, "10.43.0.10|" + inCluster + "|ndots:5"},
		{corev1.DNSDefault, false, nil, "192.0.2.1|example.com|ndots:2 rotate"},
		{corev1.DNSNone, false, extra, "192.0.2.9|my.domain|ndots:3"},
		{corev1.DNSClusterFirst, false, extra, "10.43.0.10 192.0.2.9|" + inCluster + " my.domain|ndots:3"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}, Spec: corev1.PodSpec{DNSPolicy: c.policy, HostNetwork: c.host, DNSConfig: c.extra}}
		got, _, err := netcfg.DNS(pod, netcfg.DNSConfig{Servers: []string{"10.43.0.10"}, Domain: "cluster.local", ResolvConf: conf})
		if err != nil {
			t.Fatal(err)
		}
		if s := strings.Join(got.Servers, " ") + "|" + strings.Join(got.Searches, " ") + "|" + strings.Join(got.Options, " "); s != c.want {
			t.Errorf("%s host=%v: got %s, want %s", c.policy, c.host, s, c.want)
		}
	}
}

func TestHostsAndHostname(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "ns"}, Spec: corev1.PodSpec{Hostname: "web-0", Subdomain: "web",
		HostAliases: []corev1.HostAlias{{IP: "192.0.2.3", Hostnames: []string{"a", "b"}}}}}
	host, domain := netcfg.Hostname(pod, "cluster.local")
	got, err := netcfg.Hosts(pod, []string{"10.42.0.3"}, host, domain, "/nonexistent")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"127.0.0.1\tlocalhost\n", "10.42.0.3\tweb-0.web.ns.svc.cluster.local\tweb-0\n", "\n# Entries added by HostAliases.\n192.0.2.3\ta\tb\n"} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
	long := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 62) + "-bcd"}}
	if host, _ := netcfg.Hostname(long, ""); host != strings.Repeat("a", 62) {
		t.Errorf("host name %q", host)
	}
}

func FuzzParseResolvConf(f *testing.F) {
	f.Add("nameserver 1.2.3.4\nsearch a b.\noptions ndots:5 ; comment")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := netcfg.ParseResolvConf(strings.NewReader(s))
		if err == nil && c == nil {
			t.Fatalf("neither an answer nor an error for %q", s)
		}
	})
}
