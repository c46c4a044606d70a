package jointoken

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// Sign returns the detached JWS of content: HMAC-SHA256 with the token as key, its
// ID as the key's name (RFC 7515 appendix F). Equal input gives equal output.
func Sign(content string, t Token) string {
	encode := base64.RawURLEncoding.EncodeToString
	header := encode(fmt.Appendf(nil, `{"alg":"HS256","kid":%q}`, t.ID))
	return header + ".." + encode(mac(header, content, t))
}

// Verify reports whether a signature is that of the content by the holder of t.
func Verify(content, signature string, t Token) bool {
	header, sum, ok := strings.Cut(signature, "..")
	if !ok {
		return false
	}
	got, err := base64.RawURLEncoding.DecodeString(sum)
	return err == nil && hmac.Equal(got, mac(header, content, t))
}

func mac(header, content string, t Token) []byte {
	m := hmac.New(sha256.New, []byte(t.Bearer()))
	m.Write([]byte(header + "." + base64.RawURLEncoding.EncodeToString([]byte(content))))
	return m.Sum(nil)
}
