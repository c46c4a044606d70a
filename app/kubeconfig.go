package app

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/periplus/periplus/base/pki"
)

// writeKubeconfigs writes the administrator's configuration, with the
// certificate inside, and those of the components, which name their files so
// that renewed certificates are picked up.
func writeKubeconfigs(c *Config, id *identities) error {
	server := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(c.APIPort))
	dir := c.pkiDir()
	cert, err := os.ReadFile(filepath.Join(dir, "admin.crt"))
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "admin.key"))
	if err != nil {
		return fmt.Errorf("kubeconfig: %w", err)
	}
	admin := kubeconfig(server, "periplus", id.ca.PEM, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
	paths := []string{c.AdminKubeconfig()}
	if c.Kubeconfig != "" {
		paths = append(paths, c.Kubeconfig)
	}
	for _, path := range paths {
		if err := writeKubeconfig(path, admin); err != nil {
			return err
		}
	}
	for name := range clientNames(c.NodeName) {
		if name == "admin" {
			continue
		}
		auth := &clientcmdapi.AuthInfo{ClientCertificate: filepath.Join(dir, name+".crt"), ClientKey: filepath.Join(dir, name+".key")}
		if err := writeKubeconfig(filepath.Join(dir, name+".kubeconfig"), kubeconfig(server, "periplus", id.ca.PEM, auth)); err != nil {
			return err
		}
	}
	return nil
}

func kubeconfig(server, name string, ca []byte, auth *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	out.AuthInfos[name] = auth
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return out
}

func writeKubeconfig(path string, c *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	// A file that is right already is not written: flash wears out.
	if have, err := os.ReadFile(path); err == nil && string(have) == string(data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return pki.WriteFile(path, data, 0o600)
}

// MergeKubeconfig adds the cluster that from describes to the configuration at
// to, under the given name, and makes it the current context. Other entries stay.
func MergeKubeconfig(from, to, name string) error {
	src, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", from, err)
	}
	dst, err := clientcmd.LoadFromFile(to)
	if os.IsNotExist(err) {
		dst, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s: %w", to, err)
	}
	ctx := src.Contexts[src.CurrentContext]
	if ctx == nil {
		return fmt.Errorf("kubeconfig %s has no current context", from)
	}
	dst.Clusters[name] = src.Clusters[ctx.Cluster]
	dst.AuthInfos[name] = src.AuthInfos[ctx.AuthInfo]
	dst.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	dst.CurrentContext = name
	return writeKubeconfig(to, dst)
}
