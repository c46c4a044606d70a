package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/periplus/periplus/client"
	"github.com/periplus/periplus/journey"
)

// remote returns how a component in a process of its own reaches the API: TLS,
// protobuf, HTTP/2, with the identity in a kubeconfig.
func remote(kubeconfig, component string) (*restclient.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	config.UserAgent = client.UserAgent(component)
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.WarningHandler = restclient.NoWarnings{}
	return config, nil
}

// remoteJourney sends a component's steps to the API server's log.
func remoteJourney(config *restclient.Config) (*journey.Remote, error) {
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return journey.NewRemote(func(ctx context.Context, body []byte) error {
		return c.RESTClient().Post().AbsPath(journey.Path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
	}), nil
}

// tokenLife is how long a controller's token is valid; it is renewed well before.
const tokenLife = time.Hour

// accountConfig returns the configuration of a service account in kube-system,
// for which base asks the API for tokens.
func accountConfig(base *restclient.Config, account string) (*restclient.Config, error) {
	c, err := kubernetes.NewForConfig(base)
	if err != nil {
		return nil, err
	}
	config := restclient.AnonymousClientConfig(base)
	config.ContentConfig = base.ContentConfig
	config.QPS = base.QPS
	tokens := transport.NewCachedTokenSource(&accountTokens{c, account})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.TokenSourceWrapTransport(tokens)(next)
	})
	return config, nil
}

// accountTokens asks for tokens of one service account.
type accountTokens struct {
	client  kubernetes.Interface
	account string
}

var _ oauth2.TokenSource = (*accountTokens)(nil)

// Token implements oauth2.TokenSource. The account is made when it is missing.
func (t *accountTokens) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	accounts := t.client.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	seconds := int64(tokenLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := accounts.CreateToken(ctx, t.account, request, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: t.account, Namespace: metav1.NamespaceSystem}}, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			answer, err = accounts.CreateToken(ctx, t.account, request, metav1.CreateOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("token for service account kube-system/%s: %w", t.account, err)
	}
	return &oauth2.Token{AccessToken: answer.Status.Token, TokenType: "Bearer", Expiry: answer.Status.ExpirationTimestamp.Time}, nil
}
