package all

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/webhook"
)

// parse makes the chain that an AuthorizationConfiguration describes.
func (a *Authorization) parse(data []byte) (authz.Chain, error) {
	if len(data) == 0 {
		return nil, errors.New("empty config data")
	}
	config, err := load.LoadFromData(data)
	if err != nil {
		return nil, err
	}
	if errs := validation.ValidateAuthorizationConfiguration(a.compiler(), nil, config, sets.New(Modes...), sets.New(Webhook)); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	chain := authz.Chain{authz.Masters{}}
	for i := range config.Authorizers {
		c := &config.Authorizers[i]
		m, err := a.mode(string(c.Type), webhookOf(c))
		if err != nil {
			return nil, err
		}
		chain = append(chain, m)
	}
	return chain, nil
}

func webhookOf(c *apiserver.AuthorizerConfiguration) webhook.Config {
	w := c.Webhook
	if w == nil {
		return webhook.Config{}
	}
	out := webhook.Config{
		Name: c.Name, Version: w.SubjectAccessReviewVersion, Timeout: w.Timeout.Duration,
		DenyOnError: w.FailurePolicy == apiserver.FailurePolicyDeny, Conditions: w.MatchConditions,
	}
	if f := w.ConnectionInfo.KubeConfigFile; f != nil {
		out.Kubeconfig = *f
	}
	if w.CacheAuthorizedRequests {
		out.AuthorizedTTL = w.AuthorizedTTL.Duration
	}
	if w.CacheUnauthorizedRequests {
		out.UnauthorizedTTL = w.UnauthorizedTTL.Duration
	}
	return out
}
