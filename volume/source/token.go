package source

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/volume"
)

// tokens keeps the tokens of the node's pods in memory until they near their end.
type tokens struct {
	mu    sync.Mutex // guards byPod
	byPod map[types.UID]map[string]*authenticationv1.TokenRequest
}

// Token implements volume.Sources: tokens are kept and asked for again when they
// near their end. While the API server cannot be reached, an old one that is
// still valid is returned.
func (s *Source) Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	if req.Spec.BoundObjectRef == nil {
		return nil, errors.New("failed to fetch token: the request is not bound to a pod")
	}
	uid, key := req.Spec.BoundObjectRef.UID, tokenKey(namespace, serviceAccount, req)
	have := s.tokens.get(uid, key)
	now := time.Now()
	if have != nil && now.Before(volume.TokenRefreshAt(have)) {
		return have, nil
	}
	got, err := s.config.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, req, metav1.CreateOptions{})
	switch {
	case err == nil:
		s.tokens.put(uid, key, got)
		return got, nil
	case have != nil && now.Before(have.Status.ExpirationTimestamp.Time):
		s.config.Log.Warn("a service account token cannot be renewed, the old one is kept",
			base.KeyNamespace, namespace, base.KeyName, serviceAccount, base.KeyUID, uid, base.KeyError, err)
		return have, nil
	}
	return nil, fmt.Errorf("failed to fetch token: %w", err)
}

func tokenKey(namespace, serviceAccount string, req *authenticationv1.TokenRequest) string {
	var seconds int64
	if req.Spec.ExpirationSeconds != nil {
		seconds = *req.Spec.ExpirationSeconds
	}
	return fmt.Sprintf("%s/%s/%d/%s", namespace, serviceAccount, seconds, strings.Join(req.Spec.Audiences, "\x00"))
}

func (t *tokens) get(uid types.UID, key string) *authenticationv1.TokenRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byPod[uid][key]
}

func (t *tokens) put(uid types.UID, key string, got *authenticationv1.TokenRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byPod == nil {
		t.byPod = map[types.UID]map[string]*authenticationv1.TokenRequest{}
	}
	if t.byPod[uid] == nil {
		t.byPod[uid] = map[string]*authenticationv1.TokenRequest{}
	}
	t.byPod[uid][key] = got
}

func (t *tokens) drop(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byPod, uid)
}
