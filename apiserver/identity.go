package apiserver

import (
	"net/http"
)

// identity serves the documents by which others verify service account tokens
// (OpenID Connect Discovery 1.0 §4, RFC 7517).
func (s *Server) identity(routes *http.ServeMux) {
	tokens := s.authn.Accounts
	jwks := s.config.Authentication.JWKSURI
	if jwks == "" {
		jwks = tokens.Issuer() + "/openid/v1/jwks"
	}
	configuration := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		writeJSON(w, map[string]any{
			"issuer": tokens.Issuer(), "jwks_uri": jwks, "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": tokens.Keys().Algorithms(),
		})
	})
	keys := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jwk-set+json")
		writeJSON(w, map[string]any{"keys": tokens.Keys().JWKS()})
	})
	for _, end := range []string{"", "/{$}"} {
		routes.Handle("/.well-known/openid-configuration"+end, configuration)
		routes.Handle("/openid/v1/jwks"+end, keys)
	}
}
