package webhook_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"

	"github.com/periplus/periplus/apiserver/authn/webhook"
)

// TestWebhook: a program's answer is believed, for its audiences, and remembered.
func TestWebhook(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		review := &authenticationv1.TokenReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch review.Spec.Token {
		case "good":
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "ann"}, Audiences: review.Spec.Audiences}
		default:
			review.Status.Error = "never heard of it"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\nclusters: [{name: c, cluster: {server: '" + server.URL + "/review'}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := webhook.New(webhook.Config{Kubeconfig: path, Version: "v1", CacheTTL: time.Hour, Audiences: []string{"api"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := authenticator.WithAudiences(t.Context(), []string{"api"})
	for range 3 {
		if resp, ok, err := a.AuthenticateToken(ctx, "good"); err != nil || !ok || resp.User.GetName() != "ann" {
			t.Fatalf("%+v, %v, %v", resp, ok, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	if _, ok, _ := a.AuthenticateToken(ctx, "bad"); ok {
		t.Error("a token that the program does not know is accepted")
	}
	if _, err := webhook.New(webhook.Config{Kubeconfig: filepath.Join(t.TempDir(), "absent"), Version: "v1"}); err == nil {
		t.Error("an absent file is accepted")
	}
}
