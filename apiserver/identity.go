package apiserver

import (
	"encoding/base64"
	"net/http"

	"github.com/periplus/periplus/apiserver/authn"
)

// identity serves the documents by which others verify service account tokens
// (OpenID Connect Discovery 1.0 §4, RFC 7517).
func (s *Server) identity(routes *http.ServeMux) {
	jwks := s.config.Issuer + "/openid/v1/jwks"
	configuration := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		writeJSON(w, map[string]any{
			"issuer": s.config.Issuer, "jwks_uri": jwks, "response_types_supported": []string{"id_token"},
			"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256"},
		})
	})
	keys := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		public := &s.config.ServiceAccountKey.PublicKey
		id, err := authn.KeyID(public)
		point, perr := public.Bytes()
		if err != nil || perr != nil {
			http.Error(w, "the signing key cannot be shown", http.StatusInternalServerError)
			return
		}
		// An uncompressed point: 4, then x and y of 32 bytes each.
		half := (len(point) - 1) / 2
		encode := base64.RawURLEncoding.EncodeToString
		w.Header().Set("Content-Type", "application/jwk-set+json")
		writeJSON(w, map[string]any{"keys": []map[string]string{{
			"use": "sig", "kty": "EC", "kid": id, "crv": "P-256", "alg": "ES256", "x": encode(point[1 : 1+half]), "y": encode(point[1+half:]),
		}}})
	})
	for _, end := range []string{"", "/{$}"} {
		routes.Handle("/.well-known/openid-configuration"+end, configuration)
		routes.Handle("/openid/v1/jwks"+end, keys)
	}
}
