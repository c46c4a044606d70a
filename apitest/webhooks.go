package apitest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/base/pki"
)

// WebhookInstallOptions say which webhooks are installed, and where the test serves
// them: on LocalServingHost and LocalServingPort, with tls.crt and tls.key of
// LocalServingCertDir. Each is chosen or made when it is empty.
type WebhookInstallOptions struct {
	// Paths are files or directories with configurations.
	Paths                    []string
	MutatingWebhooks         []*admissionv1.MutatingWebhookConfiguration
	ValidatingWebhooks       []*admissionv1.ValidatingWebhookConfiguration
	IgnoreErrorIfPathMissing bool
	// IgnoreSchemeConvertible is not needed; it is here for suites that set it.
	IgnoreSchemeConvertible bool

	LocalServingHost    string
	LocalServingPort    int
	LocalServingCertDir string
	// LocalServingHostExternalName is the name by which the API server calls, if not
	// LocalServingHost.
	LocalServingHostExternalName string
	// LocalServingCAData is the authority of the certificate.
	LocalServingCAData []byte

	// MaxTime and PollInterval are not needed; they are here for suites that set them.
	MaxTime      time.Duration
	PollInterval time.Duration

	madeDir bool
}

// prepare reads the files, chooses a port and makes a certificate, if there is
// anything to serve.
func (o *WebhookInstallOptions) prepare() error {
	err := documents(o.Paths, !o.IgnoreErrorIfPathMissing, func(meta metav1.TypeMeta, data []byte) error {
		switch meta.Kind {
		case "MutatingWebhookConfiguration":
			hook := &admissionv1.MutatingWebhookConfiguration{}
			o.MutatingWebhooks = append(o.MutatingWebhooks, hook)
			return yaml.Unmarshal(data, hook)
		case "ValidatingWebhookConfiguration":
			hook := &admissionv1.ValidatingWebhookConfiguration{}
			o.ValidatingWebhooks = append(o.ValidatingWebhooks, hook)
			return yaml.Unmarshal(data, hook)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(o.MutatingWebhooks)+len(o.ValidatingWebhooks) == 0 {
		return nil
	}
	return o.PrepWithoutInstalling()
}

// PrepWithoutInstalling chooses where webhooks are served and makes the certificate.
func (o *WebhookInstallOptions) PrepWithoutInstalling() error {
	if o.LocalServingHost == "" {
		o.LocalServingHost = "127.0.0.1"
	}
	if o.LocalServingPort == 0 {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort(o.LocalServingHost, "0"))
		if err != nil {
			return fmt.Errorf("a port for webhooks: %w", err)
		}
		o.LocalServingPort = l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return err
		}
	}
	if o.LocalServingCAData == nil {
		if err := o.certify(); err != nil {
			return fmt.Errorf("a certificate for webhooks: %w", err)
		}
	}
	for _, hook := range o.MutatingWebhooks {
		for i := range hook.Webhooks {
			o.redirect(&hook.Webhooks[i].ClientConfig)
		}
	}
	for _, hook := range o.ValidatingWebhooks {
		for i := range hook.Webhooks {
			o.redirect(&hook.Webhooks[i].ClientConfig)
		}
	}
	return nil
}

func (o *WebhookInstallOptions) certify() error {
	ca, err := pki.New("webhooks")
	if err != nil {
		return err
	}
	r := pki.Request{CommonName: "webhooks", DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}
	for _, host := range []string{o.LocalServingHost, o.LocalServingHostExternalName} {
		if ip := net.ParseIP(host); ip != nil {
			r.IPs = append(r.IPs, ip)
		} else if host != "" {
			r.DNSNames = append(r.DNSNames, host)
		}
	}
	cert, key, err := ca.Pair(r)
	if err != nil {
		return err
	}
	if o.LocalServingCertDir == "" {
		if o.LocalServingCertDir, err = os.MkdirTemp("", "apitest-webhooks-"); err != nil {
			return err
		}
		o.madeDir = true
	}
	o.LocalServingCAData = ca.PEM
	return errors.Join(
		os.WriteFile(filepath.Join(o.LocalServingCertDir, "tls.crt"), cert, 0o600),
		os.WriteFile(filepath.Join(o.LocalServingCertDir, "tls.key"), key, 0o600),
	)
}

// url is where the test serves a path.
func (o *WebhookInstallOptions) url(path string) string {
	host := o.LocalServingHostExternalName
	if host == "" {
		host = o.LocalServingHost
	}
	return "https://" + net.JoinHostPort(host, strconv.Itoa(o.LocalServingPort)) + path
}

// redirect leads a webhook to the test.
func (o *WebhookInstallOptions) redirect(c *admissionv1.WebhookClientConfig) {
	c.CABundle = o.LocalServingCAData
	if c.Service == nil {
		return
	}
	path := "/"
	if c.Service.Path != nil {
		path = *c.Service.Path
	}
	at := o.url(path)
	c.URL, c.Service = &at, nil
}

// convert leads a definition's conversion webhook to the test.
func (o *WebhookInstallOptions) convert(crd *apiextensionsv1.CustomResourceDefinition) {
	c := crd.Spec.Conversion
	if o.LocalServingCAData == nil || c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil {
		return
	}
	path := "/convert"
	if old := c.Webhook.ClientConfig; old != nil && old.Service != nil && old.Service.Path != nil {
		path = *old.Service.Path
	}
	at := o.url(path)
	c.Webhook.ClientConfig = &apiextensionsv1.WebhookClientConfig{URL: &at, CABundle: o.LocalServingCAData}
}

// Install prepares and installs webhooks in any cluster.
func (o *WebhookInstallOptions) Install(config *rest.Config) error {
	if err := o.prepare(); err != nil {
		return err
	}
	return o.install(context.Background(), config)
}

func (o *WebhookInstallOptions) install(ctx context.Context, config *rest.Config) error {
	if len(o.MutatingWebhooks)+len(o.ValidatingWebhooks) == 0 {
		return nil
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, hook := range o.MutatingWebhooks {
		if err := apply(ctx, c.AdmissionregistrationV1().MutatingWebhookConfigurations(), hook); err != nil {
			return fmt.Errorf("webhooks %s: %w", hook.Name, err)
		}
	}
	for _, hook := range o.ValidatingWebhooks {
		if err := apply(ctx, c.AdmissionregistrationV1().ValidatingWebhookConfigurations(), hook); err != nil {
			return fmt.Errorf("webhooks %s: %w", hook.Name, err)
		}
	}
	return nil
}

// writer is the part of a typed client that apply needs.
type writer[T metav1.Object] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	Create(ctx context.Context, obj T, o metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, o metav1.UpdateOptions) (T, error)
}

// apply makes an object, or brings the one that exists up to date.
func apply[T metav1.Object](ctx context.Context, c writer[T], obj T) error {
	_, err := c.Create(ctx, obj, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have, err := c.Get(ctx, obj.GetName(), metav1.GetOptions{})
	if err == nil {
		obj.SetResourceVersion(have.GetResourceVersion())
		_, err = c.Update(ctx, obj, metav1.UpdateOptions{})
	}
	return err
}

// Cleanup removes the certificate's directory, if it was made here.
func (o *WebhookInstallOptions) Cleanup() error {
	if !o.madeDir {
		return nil
	}
	o.madeDir = false
	dir := o.LocalServingCertDir
	o.LocalServingCertDir, o.LocalServingCAData = "", nil
	return os.RemoveAll(dir)
}
