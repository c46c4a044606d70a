package aggregator

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Trust is what extension API servers need to believe this server: they read it from the
// ConfigMap kube-system/extension-apiserver-authentication.
type Trust struct {
	// ClientCA verifies client certificates, in PEM.
	ClientCA []byte
	// ProxyCA verifies the front proxy, in PEM; nil: there is none.
	ProxyCA []byte
	// ProxyNames are the common names that a front proxy may have; none: any.
	ProxyNames []string
	// The headers by which it names users.
	UserHeaders, UIDHeaders, GroupHeaders, ExtraPrefixes []string
}

const trustName = "extension-apiserver-authentication"

// Publish writes the ConfigMap. Authorities that other API servers have written stay.
func (t Trust) Publish(ctx context.Context, c kubernetes.Interface) error {
	configMaps := c.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	return retry.OnError(retry.DefaultRetry, func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }, func() error {
		current, err := configMaps.Get(ctx, trustName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: trustName, Namespace: metav1.NamespaceSystem}, Data: t.data(nil)}, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		data := t.data(current.Data)
		if maps.Equal(data, current.Data) {
			return nil
		}
		next := current.DeepCopy()
		next.Data = data
		_, err = configMaps.Update(ctx, next, metav1.UpdateOptions{})
		return err
	})
}

func (t Trust) data(before map[string]string) map[string]string {
	out := map[string]string{}
	if ca := join([]byte(before["client-ca-file"]), t.ClientCA); len(ca) > 0 {
		out["client-ca-file"] = string(ca)
	}
	ca := join([]byte(before["requestheader-client-ca-file"]), t.ProxyCA)
	if len(ca) == 0 {
		return out
	}
	out["requestheader-client-ca-file"] = string(ca)
	for key, list := range map[string][]string{
		"requestheader-allowed-names": t.ProxyNames, "requestheader-username-headers": t.UserHeaders, "requestheader-uid-headers": t.UIDHeaders,
		"requestheader-group-headers": t.GroupHeaders, "requestheader-extra-headers-prefix": t.ExtraPrefixes,
	} {
		if list == nil {
			list = []string{}
		}
		text, _ := json.Marshal(list) // strings can always be written
		out[key] = string(text)
	}
	return out
}

// join returns the certificates of a and those of b that are not among them.
func join(a, b []byte) []byte {
	var out bytes.Buffer
	seen := map[string]bool{}
	for _, text := range [][]byte{a, b} {
		for {
			var block *pem.Block
			if block, text = pem.Decode(text); block == nil {
				break
			}
			if block.Type == "CERTIFICATE" && !seen[string(block.Bytes)] {
				seen[string(block.Bytes)] = true
				_ = pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}) // a buffer takes everything
			}
		}
	}
	return out.Bytes()
}
