package jointoken

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrInvalid is returned when a text is not a token.
var ErrInvalid = errors.New(`a join token looks like "abcdef.0123456789abcdef" or "K10<hash>::abcdef.0123456789abcdef": copy the whole of what "peri token create" printed`)

const prefix = "K10"

var (
	short = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)
	id    = regexp.MustCompile(`^[a-z0-9]{6}$`)
	hash  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// A Token lets a machine ask for a certificate.
type Token struct {
	ID     string // public: names the token's Secret
	Secret string
	CAHash string // SHA-256 of the authority's public key, in hexadecimal; "" when unknown
}

// New draws a token.
func New() Token { return Token{ID: draw(6), Secret: draw(16)} }

// draw returns n random characters of a-z, 0-9.
func draw(n int) string {
	const alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
	var out strings.Builder
	var b [1]byte
	for out.Len() < n {
		_, _ = rand.Read(b[:]) // it never fails
		// 252 is the greatest multiple of 36 in a byte: all characters are as likely.
		if b[0] < 252 {
			out.WriteByte(alphabet[b[0]%36])
		}
	}
	return out.String()
}

// Parse reads either form.
func Parse(s string) (Token, error) {
	var t Token
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, prefix); ok {
		h, credentials, ok := strings.Cut(rest, "::")
		if !ok || !hash.MatchString(h) {
			return t, ErrInvalid
		}
		t.CAHash, s = h, credentials
	}
	m := short.FindStringSubmatch(s)
	if m == nil {
		return Token{}, ErrInvalid
	}
	t.ID, t.Secret = m[1], m[2]
	return t, nil
}

// IsID reports whether s is the public part of a token.
func IsID(s string) bool { return id.MatchString(s) }

// Bearer is what the API server is shown.
func (t Token) Bearer() string { return t.ID + "." + t.Secret }

// String is the token with all that is known. It is a secret.
func (t Token) String() string {
	if t.CAHash == "" {
		return t.Bearer()
	}
	return prefix + t.CAHash + "::" + t.Bearer()
}

// HashOf is the hash by which a token names an authority.
func HashOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// Certificates parses a bundle of PEM certificates.
func Certificates(bundle []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate authority: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("certificate authority: no PEM certificate")
	}
	return out, nil
}
