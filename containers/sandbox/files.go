package sandbox

import (
	"errors"
	"os"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// writeFiles writes what containers see in /etc. The kubelet mounts its own
// /etc/hosts over ours.
func (s *Sandbox) writeFiles(config *runtimeapi.PodSandboxConfig) error {
	if err := os.MkdirAll(s.Dir, 0o711); err != nil {
		return err
	}
	hostname := config.GetHostname()
	if hostname == "" {
		hostname, _ = os.Hostname()
	}
	hosts := readOr("/etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost\n")
	resolv := ResolvConf(config.GetDnsConfig())
	if resolv == nil {
		resolv = readOr("/etc/resolv.conf", "")
	}
	err := errors.Join(
		os.WriteFile(s.Hostname, []byte(hostname+"\n"), 0o644),
		os.WriteFile(s.Hosts, hosts, 0o644),
		os.WriteFile(s.ResolvConf, resolv, 0o644),
	)
	if uid, gid := s.root(); err == nil && uid != 0 {
		for _, f := range []string{s.Hostname, s.Hosts, s.ResolvConf} {
			err = errors.Join(err, os.Chown(f, int(uid), int(gid)))
		}
	}
	return err
}

// ResolvConf renders resolv.conf(5), nil if there is no configuration.
func ResolvConf(dns *runtimeapi.DNSConfig) []byte {
	if dns == nil || len(dns.GetServers())+len(dns.GetSearches())+len(dns.GetOptions()) == 0 {
		return nil
	}
	var b strings.Builder
	if s := dns.GetSearches(); len(s) > 0 {
		b.WriteString("search " + strings.Join(s, " ") + "\n")
	}
	for _, s := range dns.GetServers() {
		b.WriteString("nameserver " + s + "\n")
	}
	if o := dns.GetOptions(); len(o) > 0 {
		b.WriteString("options " + strings.Join(o, " ") + "\n")
	}
	return []byte(b.String())
}

func readOr(path, otherwise string) []byte {
	b, err := os.ReadFile(path)
	if err != nil {
		return []byte(otherwise)
	}
	return b
}
