package webhook

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Config says whom to ask.
type Config struct {
	// Kubeconfig is the path of a file with the server as cluster and, as user, how this
	// server proves itself to it.
	Kubeconfig string
	// Version of the reviews: v1 or v1beta1.
	Version string
	// CacheTTL is how long answers hold.
	CacheTTL time.Duration
	// Audiences are those of the API server: for programs that do not know of audiences.
	Audiences []string
}

// New returns an authenticator that asks.
func New(c Config) (authenticator.Token, error) {
	config, err := clientConfig(c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Kubeconfig, err)
	}
	asks, err := webhook.New(config, c.Version, c.Audiences, *webhook.DefaultRetryBackoff())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Kubeconfig, err)
	}
	if c.CacheTTL <= 0 {
		return asks, nil
	}
	return cache.New(asks, false, c.CacheTTL, c.CacheTTL), nil
}

func clientConfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}
