package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/kubelet/bootstrap"
)

// cluster is what is the same on all nodes. Servers write it into a ConfigMap,
// agents take it from there.
type cluster struct {
	ClusterCIDR   string `json:"clusterCIDR"`
	ServiceCIDR   string `json:"serviceCIDR"`
	ClusterDNS    string `json:"clusterDNS"`
	ClusterDomain string `json:"clusterDomain"`
	PodNetwork    string `json:"podNetwork"`
}

func (c *Config) cluster() cluster {
	return cluster{c.ClusterCIDR, c.ServiceCIDR, c.ClusterDNS, c.ClusterDomain, c.PodNetwork}
}

// adopt sets up this machine as the cluster is.
func (c *Config) adopt(data json.RawMessage) error {
	var x cluster
	if err := json.Unmarshal(data, &x); err != nil {
		return fmt.Errorf("how the cluster is set up (kube-system/%s): %w", bootstrap.ConfigMapName, err)
	}
	c.ClusterCIDR, c.ServiceCIDR, c.ClusterDNS, c.ClusterDomain, c.PodNetwork = x.ClusterCIDR, x.ServiceCIDR, x.ClusterDNS, x.ClusterDomain, x.PodNetwork
	return c.Validate()
}

// publishCluster tells machines that join whom to trust and how the cluster is set up.
func (s *controlPlane) publishCluster(ctx context.Context, c kubernetes.Interface) error {
	server := "https://" + net.JoinHostPort(s.advertise().Addr().String(), strconv.Itoa(s.config.APIPort))
	info := kubeconfig(server, "", s.id.ca.PEM, nil)
	info.Contexts, info.AuthInfos, info.CurrentContext = nil, nil, ""
	text, err := clientcmd.Write(*info)
	if err != nil {
		return err
	}
	config, err := json.Marshal(s.config.cluster())
	if err != nil {
		return err
	}
	if err := keepConfigMap(ctx, c, metav1.NamespacePublic, "cluster-info", "kubeconfig", string(text)); err != nil {
		return err
	}
	return keepConfigMap(ctx, c, metav1.NamespaceSystem, bootstrap.ConfigMapName, bootstrap.ConfigKey, string(config))
}

// keepConfigMap sets one key of a ConfigMap; the others are others'.
func keepConfigMap(ctx context.Context, c kubernetes.Interface, namespace, name, key, value string) error {
	maps := c.CoreV1().ConfigMaps(namespace)
	have, err := maps.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = maps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string]string{key: value},
		}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil // another server of the cluster
		}
	case err == nil && have.Data[key] != value:
		changed := have.DeepCopy()
		if changed.Data == nil {
			changed.Data = map[string]string{}
		}
		changed.Data[key] = value
		_, err = maps.Update(ctx, changed, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("config map %s/%s: %w", namespace, name, err)
	}
	return nil
}

// advertise is where other machines reach this API server.
func (s *controlPlane) advertise() netip.AddrPort {
	ip := s.nodeIP
	if a, err := netip.ParseAddr(s.config.AdvertiseAddress); err == nil {
		ip = a
	}
	return netip.AddrPortFrom(ip, uint16(s.config.APIPort)) //nolint:gosec // validated
}
