package app

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// Flags binds c's fields to flags. A flag that is given wins over the file.
func (c *Config) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.StateDir, "state-dir", c.StateDir, "directory of all that survives a reboot")
	f.StringVar(&c.RunDir, "run-dir", c.RunDir, "directory of sockets and process IDs")
	f.StringVar(&c.Kubeconfig, "kubeconfig-path", c.Kubeconfig, "where the administrator's kubeconfig is written besides the state directory")
	f.StringVar(&c.NodeName, "node-name", c.NodeName, "this machine's name in the cluster (default: the host name)")
	f.StringVar(&c.NodeIP, "node-ip", c.NodeIP, "this machine's address (default: that of the default route)")
	f.StringVar(&c.BindAddress, "bind-address", c.BindAddress, "address that the API server and the kubelet listen on (default: all)")
	f.IntVar(&c.APIPort, "api-port", c.APIPort, "port of the API server")
	f.IntVar(&c.KubeletPort, "kubelet-port", c.KubeletPort, "port of the kubelet")
	f.StringSliceVar(&c.TLSSANs, "tls-san", c.TLSSANs, "further names or addresses in the API server's certificate")
	f.StringVar(&c.AdvertiseAddress, "advertise-address", c.AdvertiseAddress, "address at which other machines reach the API server (default: node-ip)")
	f.StringVar(&c.PodNetwork, "pod-network", c.PodNetwork, "how pods of different nodes reach each other: vxlan (tunnels) or direct (routes, for nodes in one network)")
	f.StringVar(&c.ProxyMode, "proxy-mode", c.ProxyMode, "what Services are made of in the kernel: nftables or iptables")
	f.StringVar(&c.ClusterCIDR, "cluster-cidr", c.ClusterCIDR, "range of the pods' addresses")
	f.StringVar(&c.ServiceCIDR, "service-cidr", c.ServiceCIDR, "range of the Services' cluster IPs")
	f.StringVar(&c.ClusterDNS, "cluster-dns", c.ClusterDNS, "address of the cluster's DNS")
	f.StringVar(&c.ClusterDomain, "cluster-domain", c.ClusterDomain, "domain of the cluster's names")
	f.IntVar(&c.IngressHTTPPort, "ingress-http-port", c.IngressHTTPPort, "port on which every node serves Ingresses over HTTP (0: none)")
	f.IntVar(&c.IngressHTTPSPort, "ingress-https-port", c.IngressHTTPSPort, "port on which every node serves Ingresses over HTTPS")
	f.BoolVar(&c.GatewayAPI, "gateway-api", c.GatewayAPI, "make the kinds of the Gateway API, which stay; they are served as soon as they are there")
	f.StringSliceVar(&c.RuntimeConfig, "runtime-config", c.RuntimeConfig, "versions of the API to turn on or off: api/beta=true, group/version=true")
	c.EncryptionConfig.flags(f)
	c.AuthenticationConfig.flags(f)
	c.ProxyConfig.flags(f)
	c.AuthorizationConfig.flags(f)
	c.AdmissionConfig.flags(f)
	c.KubeletConfig.flags(f)
	f.StringSliceVar(&c.EtcdEndpoints, "etcd-servers", c.EtcdEndpoints, "external etcd to use instead of the embedded one")
	f.StringVar(&c.EtcdCA, "etcd-cafile", c.EtcdCA, "authority of the external etcd")
	f.StringVar(&c.EtcdCert, "etcd-certfile", c.EtcdCert, "client certificate towards the external etcd")
	f.StringVar(&c.EtcdKey, "etcd-keyfile", c.EtcdKey, "key of etcd-certfile")
	c.AuditOptions.Flags(f)
	c.LimitsConfig.flags(f)
	c.ControllersConfig.flags(f)
	f.StringSliceVar(&c.Controllers, "controllers", c.Controllers, `controllers to run: "*" for all, "name", "-name"`)
	f.StringVar(&c.RuntimeEndpoint, "container-runtime-endpoint", c.RuntimeEndpoint, "socket of another CRI runtime (default: the embedded one)")
	f.StringVar(&c.OCIRuntime, "oci-runtime", c.OCIRuntime, "OCI runtime of the embedded container runtime (default: crun, else runc)")
	f.StringVar(&c.Monitor, "monitor", c.Monitor, "container monitor program (default: the embedded one)")
	f.StringVar(&c.CgroupRoot, "cgroup-root", c.CgroupRoot, "cgroup below which pods and containers live")
	f.StringToStringVar(mirrorFlag(c), "registry-mirror", nil, "registry=endpoint: asked before the registry itself")
	f.StringSliceVar(&c.ImagePeers, "image-peers", c.ImagePeers, "image sockets of other nodes on this machine, which are asked before a registry")
	f.StringVar(&c.ResolvConf, "resolv-conf", c.ResolvConf, "resolver configuration of this machine")
	f.BoolVar(&c.ForgetSecrets, "forget-secrets", c.ForgetSecrets, "keep Secrets and tokens off an agent's disk: after a reboot without a server, pods that need them wait")
	f.StringVar(&c.PodManifests, "pod-manifest-path", c.PodManifests, "directory of static pods")
	f.StringSliceVar(&c.Manifests, "manifests", c.Manifests, "directories whose files are applied and kept (default: <state-dir>/manifests)")
	f.StringVar(&c.ImageArchives, "image-archives", c.ImageArchives, "directory whose image archives are imported (default: <state-dir>/images)")
	f.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
	f.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
}

// LoadAndOverride reads the file, if any, and then applies again the flags that were given.
func (c *Config) LoadAndOverride(path string, f *pflag.FlagSet) error {
	if path != "" {
		given := map[string]string{}
		f.Visit(func(flag *pflag.Flag) { given[flag.Name] = flag.Value.String() })
		if err := c.Load(path); err != nil {
			return err
		}
		for name, value := range given {
			if name == "config" || name == "registry-mirror" {
				continue
			}
			if s, ok := f.Lookup(name).Value.(pflag.SliceValue); ok {
				if err := s.Replace(strings.Split(strings.Trim(value, "[]"), ",")); err != nil {
					return fmt.Errorf("--%s: %w", name, err)
				}
				continue
			}
			if err := f.Set(name, value); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	if err := c.Complete(); err != nil {
		return err
	}
	for registry, endpoint := range c.mirrors {
		if c.RegistryMirrors == nil {
			c.RegistryMirrors = map[string][]string{}
		}
		c.RegistryMirrors[registry] = append(c.RegistryMirrors[registry], endpoint)
	}
	return nil
}

func mirrorFlag(c *Config) *map[string]string { return &c.mirrors }

// Logger returns the process's logger and lets the libraries use it too.
func (c *Config) Logger() *slog.Logger {
	var level slog.Level
	// Validate has checked the text.
	_ = level.UnmarshalText([]byte(c.LogLevel))
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(os.Stderr, options)
	if c.LogFormat == "json" {
		h = slog.NewJSONHandler(os.Stderr, options)
	}
	log := slog.New(h)
	slog.SetDefault(log)
	// Libraries of Kubernetes report through klog what they could not do; what
	// they did is of no interest.
	klog.SetSlogLogger(slog.New(&floor{h, max(level, slog.LevelWarn)}))
	return log
}
