package app

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/audit"
	cniall "github.com/periplus/periplus/cni/all"
	"github.com/periplus/periplus/containers/image/admin"
	proxyall "github.com/periplus/periplus/proxy/all"
)

// Version is the version of Kubernetes that Periplus serves.
const Version = "v1.37.2"

// Release is the version of Periplus itself; the build sets it.
var Release = "v0.1.0"

// AuditOptions are the fields of Config that begin with audit-.
type AuditOptions = audit.Options

// Config is everything that can be set, by file (YAML, the names in the tags)
// or by flag of the same name.
type Config struct {
	// StateDir holds all that survives a reboot. RunDir holds sockets and what
	// does not.
	StateDir string `json:"state-dir,omitempty"`
	RunDir   string `json:"run-dir,omitempty"`
	// Kubeconfig is where the administrator's configuration is written, besides
	// <state-dir>/kubeconfig.yaml.
	Kubeconfig string `json:"kubeconfig,omitempty"`

	// NodeName is this machine's name in the cluster; default: the host name.
	NodeName string `json:"node-name,omitempty"`
	// NodeIP is this machine's address; default: that of the default route.
	NodeIP string `json:"node-ip,omitempty"`

	// BindAddress is where the API server listens; default: all addresses.
	BindAddress string `json:"bind-address,omitempty"`
	APIPort     int    `json:"api-port,omitempty"`
	KubeletPort int    `json:"kubelet-port,omitempty"`
	// TLSSANs are further names and addresses in the API server's certificate.
	TLSSANs []string `json:"tls-san,omitempty"`

	// AdvertiseAddress is where other machines reach the API server; default: node-ip.
	AdvertiseAddress string `json:"advertise-address,omitempty"`
	// ClusterInit makes this server the first of several: others may join it.
	ClusterInit bool `json:"cluster-init,omitempty"`
	// DisableAgent lets a server run no pods: it has no node.
	DisableAgent bool `json:"disable-agent,omitempty"`
	// Server is the API server of the cluster that this machine joins, Token the
	// token for it, or "@" and a file that holds it.
	Server string `json:"server,omitempty"`
	Token  string `json:"token,omitempty"`
	// PodNetwork is how pods of different nodes reach each other: vxlan or direct.
	PodNetwork string `json:"pod-network,omitempty"`

	// ProxyMode is what Services are made of in the kernel: nftables or iptables.
	ProxyMode string `json:"proxy-mode,omitempty"`

	// RuntimeConfig turns versions of the API on and off: "api/beta=true",
	// "resource.k8s.io/v1beta2=true". GA versions are on, others off.
	RuntimeConfig []string `json:"runtime-config,omitempty"`

	ClusterCIDR   string `json:"cluster-cidr,omitempty"`
	ServiceCIDR   string `json:"service-cidr,omitempty"`
	ClusterDNS    string `json:"cluster-dns,omitempty"`
	ClusterDomain string `json:"cluster-domain,omitempty"`

	// IngressHTTPPort and IngressHTTPSPort are where Ingresses are served on every
	// node, from the first one on; 0 serves none on this machine. GatewayAPI makes the
	// kinds of the Gateway API at the start; they are served as soon as they are there,
	// whoever has made them.
	IngressHTTPPort  int  `json:"ingress-http-port,omitempty"`
	IngressHTTPSPort int  `json:"ingress-https-port,omitempty"`
	GatewayAPI       bool `json:"gateway-api,omitempty"`

	// EtcdEndpoints use an external etcd instead of the embedded one.
	EtcdEndpoints []string `json:"etcd-servers,omitempty"`
	EtcdCA        string   `json:"etcd-cafile,omitempty"`
	EtcdCert      string   `json:"etcd-certfile,omitempty"`
	EtcdKey       string   `json:"etcd-keyfile,omitempty"`

	EncryptionConfig     `json:",inline"`
	AuthenticationConfig `json:",inline"`
	ProxyConfig          `json:",inline"`
	// AuthorizationConfig is how the API server decides.
	AuthorizationConfig `json:",inline"`

	// KubeletConfig is what the node keeps for itself.
	KubeletConfig `json:",inline"`

	// AdmissionConfig says who is asked about writes.
	AdmissionConfig `json:",inline"`

	// LimitsConfig says how much the API server does at a time.
	LimitsConfig `json:",inline"`

	// AuditOptions say which requests to the API server are logged, and where.
	AuditOptions

	// Controllers switches controllers on and off: "*", "name", "-name".
	Controllers []string `json:"controllers,omitempty"`

	// ControllersConfig says how controllers work.
	ControllersConfig `json:",inline"`

	// RuntimeEndpoint is another CRI runtime's socket; default: the embedded one.
	RuntimeEndpoint string `json:"container-runtime-endpoint,omitempty"`
	// OCIRuntime is a path or name; default: crun, else runc.
	OCIRuntime string `json:"oci-runtime,omitempty"`
	// Monitor is the container monitor program; default: the embedded one.
	Monitor string `json:"monitor,omitempty"`
	// CgroupRoot is the cgroup below which pods and containers live.
	CgroupRoot string `json:"cgroup-root,omitempty"`
	// RegistryMirrors maps a registry to the endpoints that are asked before it.
	RegistryMirrors map[string][]string `json:"registry-mirrors,omitempty"`
	// ImagePeers are patterns of other nodes' image sockets on this machine, which
	// are asked before a registry.
	ImagePeers []string `json:"image-peers,omitempty"`
	// ResolvConf names the upstream resolvers; default /etc/resolv.conf.
	ResolvConf string `json:"resolv-conf,omitempty"`
	// ForgetSecrets keeps Secrets and tokens off an agent's disk: after a reboot without
	// a server, pods that need them wait.
	ForgetSecrets bool `json:"forget-secrets,omitempty"`
	// PodManifests is a directory of static pods.
	PodManifests string `json:"pod-manifest-path,omitempty"`

	// Manifests are directories whose files are applied and kept; default:
	// <state-dir>/manifests, and /etc/periplus/manifests for the usual state directory.
	Manifests []string `json:"manifests,omitempty"`
	// ImageArchives is a directory whose image archives are imported; default:
	// <state-dir>/images.
	ImageArchives string `json:"image-archives,omitempty"`

	// ComponentKubeconfig is the identity of a part that runs alone.
	ComponentKubeconfig string `json:"component-kubeconfig,omitempty"`

	mirrors map[string]string // from the flag; joined with RegistryMirrors

	LogLevel  string `json:"log-level,omitempty"`  // debug, info, warn, error
	LogFormat string `json:"log-format,omitempty"` // text, json
}

// ShareDisk is for a cluster on a machine that is full of other things, as a laptop is:
// it does not take a disk that they have filled for its own to clear.
func (c *Config) ShareDisk() {
	c.EvictionHard = map[string]string{"memory.available": "100Mi"}
	c.ImageGCHigh = 100
}

// sharedDisk are the flags that do what ShareDisk does.
var sharedDisk = []string{"--eviction-hard=memory.available=100Mi", "--image-gc-high-threshold=100"}

// Defaults are the values of fields that nobody set.
func Defaults() Config {
	return Config{
		StateDir: "/var/lib/periplus", RunDir: "/run/periplus", Kubeconfig: "/etc/periplus/kubeconfig.yaml",
		APIPort: 6443, KubeletPort: 10250, IngressHTTPPort: 80, IngressHTTPSPort: 443,
		ClusterCIDR: "10.42.0.0/16", ServiceCIDR: "10.43.0.0/16", ClusterDNS: "10.43.0.10", ClusterDomain: "cluster.local",
		PodNetwork: "vxlan", ProxyMode: "nftables", Controllers: []string{"*"}, CgroupRoot: "/", ResolvConf: "/etc/resolv.conf",
		AuthenticationConfig: defaultAuthenticationConfig(), ProxyConfig: defaultProxyConfig(), AuthorizationConfig: defaultAuthorization(), KubeletConfig: defaultKubeletConfig(), LogLevel: "info", LogFormat: "text", AuditOptions: audit.Defaults(), LimitsConfig: defaultLimits(), ControllersConfig: defaultControllers(),
	}
}

// Load reads a configuration file over c: fields that it does not name stay.
func (c *Config) Load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	return nil
}

// Complete fills what depends on the machine and on other fields, then validates.
func (c *Config) Complete() error {
	if c.NodeName == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("node-name: the host name cannot be read: %w; set node-name", err)
		}
		c.NodeName = strings.ToLower(name)
	}
	for _, dir := range []*string{&c.StateDir, &c.RunDir} {
		abs, err := filepath.Abs(*dir)
		if err != nil {
			return fmt.Errorf("%s: %w", *dir, err)
		}
		*dir = abs
	}
	if c.BindAddress == "" {
		c.BindAddress = "0.0.0.0"
	}
	return c.Validate()
}

// Validate names every field with a value that is not allowed.
func (c *Config) Validate() error {
	var errs []error
	bad := func(field string, value any, allowed string) {
		errs = append(errs, fmt.Errorf("%s: %v is not allowed: must be %s", field, value, allowed))
	}
	if msgs := validation.IsDNS1123Subdomain(c.NodeName); len(msgs) > 0 {
		bad("node-name", fmt.Sprintf("%q", c.NodeName), msgs[0])
	}
	for field, port := range map[string]int{"api-port": c.APIPort, "kubelet-port": c.KubeletPort} {
		if port < 1 || port > 65535 {
			bad(field, port, "a port between 1 and 65535")
		}
	}
	if c.APIPort == c.KubeletPort {
		bad("kubelet-port", c.KubeletPort, "another port than api-port")
	}
	for field, port := range map[string]int{"ingress-http-port": c.IngressHTTPPort, "ingress-https-port": c.IngressHTTPSPort} {
		if port < 0 || port > 65535 {
			bad(field, port, "a port between 1 and 65535, or 0 for none")
		}
	}
	if c.IngressHTTPPort != 0 && c.IngressHTTPPort == c.IngressHTTPSPort {
		bad("ingress-https-port", c.IngressHTTPSPort, "another port than ingress-http-port")
	}
	if _, err := c.runtimeConfig(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.AuthenticationConfig.validate(), c.ProxyConfig.validate(), c.AuthorizationConfig.validate(), c.LimitsConfig.validate(), c.validateControllers(), c.KubeletConfig.validate())
	pods := prefixOf(c.ClusterCIDR, "cluster-cidr", bad)
	services := prefixOf(c.ServiceCIDR, "service-cidr", bad)
	if pods.IsValid() && services.IsValid() {
		if pods.Overlaps(services) {
			bad("service-cidr", c.ServiceCIDR, "a range that does not overlap cluster-cidr "+c.ClusterCIDR)
		}
		if dns, err := netip.ParseAddr(c.ClusterDNS); err != nil || !services.Contains(dns) {
			bad("cluster-dns", fmt.Sprintf("%q", c.ClusterDNS), "an address in service-cidr "+c.ServiceCIDR)
		}
		if pods.Bits() > 24 {
			bad("cluster-cidr", c.ClusterCIDR, "a range of at least /24, since each node gets a /24 of it")
		}
	}
	if !slices.Contains(proxyall.Names(), c.ProxyMode) {
		bad("proxy-mode", fmt.Sprintf("%q", c.ProxyMode), "one of "+strings.Join(proxyall.Names(), ", "))
	}
	if !slices.Contains(cniall.BackboneNames(), c.PodNetwork) {
		bad("pod-network", fmt.Sprintf("%q", c.PodNetwork), "one of "+strings.Join(cniall.BackboneNames(), ", "))
	}
	for field, s := range map[string]string{"node-ip": c.NodeIP, "bind-address": c.BindAddress, "advertise-address": c.AdvertiseAddress} {
		if s == "" {
			continue
		}
		if _, err := netip.ParseAddr(s); err != nil {
			bad(field, fmt.Sprintf("%q", s), "an IP address")
		}
	}
	if msgs := validation.IsDNS1123Subdomain(c.ClusterDomain); len(msgs) > 0 {
		bad("cluster-domain", fmt.Sprintf("%q", c.ClusterDomain), msgs[0])
	}
	switch c.LogLevel {
	case "debug", "info", "warn", "error":
	default:
		bad("log-level", fmt.Sprintf("%q", c.LogLevel), "debug, info, warn or error")
	}
	if c.LogFormat != "text" && c.LogFormat != "json" {
		bad("log-format", fmt.Sprintf("%q", c.LogFormat), "text or json")
	}
	if err := c.AuditOptions.Validate(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func prefixOf(s, field string, bad func(string, any, string)) netip.Prefix {
	p, err := netip.ParsePrefix(s)
	if err != nil || p != p.Masked() {
		bad(field, fmt.Sprintf("%q", s), "a network like 10.42.0.0/16")
		return netip.Prefix{}
	}
	return p
}

// The places inside the state and run directories.
func (c *Config) pkiDir() string        { return filepath.Join(c.StateDir, "pki") }
func (c *Config) etcdDir() string       { return filepath.Join(c.StateDir, "etcd") }
func (c *Config) etcdSocket() string    { return filepath.Join(c.RunDir, "etcd.sock") }
func (c *Config) criSocket() string     { return filepath.Join(c.RunDir, "cri.sock") }
func (c *Config) adminSocket() string   { return filepath.Join(c.RunDir, admin.SocketName) }
func (c *Config) kubeletDir() string    { return filepath.Join(c.StateDir, "kubelet") }
func (c *Config) containersDir() string { return filepath.Join(c.StateDir, "containers") }
func (c *Config) imagesDir() string     { return filepath.Join(c.StateDir, "images") }
func (c *Config) snapshotsDir() string  { return filepath.Join(c.StateDir, "snapshots") }
func (c *Config) networkDir() string    { return filepath.Join(c.StateDir, "network") }
func (c *Config) logsDir() string       { return filepath.Join(c.StateDir, "logs", "pods") }

// AdminKubeconfig is the administrator's configuration inside the state directory.
func (c *Config) AdminKubeconfig() string { return filepath.Join(c.StateDir, "kubeconfig.yaml") }

// PidFile holds the process ID of the running peri.
func (c *Config) PidFile() string { return filepath.Join(c.RunDir, "peri.pid") }
