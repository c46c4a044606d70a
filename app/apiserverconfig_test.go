package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/periplus/periplus/app"
)

// TestAPIServerConfig: the settings of the API server's parts come from the file by the
// names of their flags, and flags win.
func TestAPIServerConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "token-auth-file: /tokens\nanonymous-auth: false\noidc-username-claim: email\nauthentication-token-webhook-cache-ttl: 5s\n" +
		"encryption-provider-config: /encryption\nencryption-provider-config-automatic-reload: true\nrequestheader-allowed-names: [front]\nenable-aggregator-routing: false\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := app.Defaults()
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.Flags(f)
	if err := f.Parse([]string{"--anonymous-auth", "--oidc-username-claim=sub"}); err != nil {
		t.Fatal(err)
	}
	if err := c.LoadAndOverride(path, f); err != nil {
		t.Fatal(err)
	}
	if c.TokenFile != "/tokens" || c.Anonymous == nil || !*c.Anonymous || c.OIDCUsernameClaim != "sub" || c.WebhookTTL.Seconds() != 5 ||
		c.EncryptionFile != "/encryption" || !c.EncryptionReload || len(c.RequestHeaderNames) != 1 || c.AggregatorRouting || !c.ServiceAccountExtend {
		t.Errorf("%+v", c)
	}
	c.StructuredConfig, c.OIDCIssuer = "/a", "http://b"
	c.ServiceAccountMaxLife.Duration = 1
	err := c.Validate()
	for _, want := range []string{"mutually exclusive", "oidc-issuer-url", "service-account-max-token-expiration"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}
