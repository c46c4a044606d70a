package basicauth

import (
	"crypto/sha1" //nolint:gosec // a format of htpasswd
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"sync"

	"golang.org/x/crypto/bcrypt"

	"github.com/periplus/periplus/l7"
)

// Filter lets known users through.
type Filter struct {
	realm string
	users map[string]string // name to hash

	mu    sync.Mutex                 // guards known
	known map[[sha256.Size]byte]bool // credentials that were right: bcrypt is slow by design
}

var _ l7.Filter = (*Filter)(nil)

const maxKnown = 4096

// New returns a filter for the lines "name:hash" of an htpasswd file.
func New(realm, htpasswd string) *Filter {
	f := &Filter{realm: realm, users: map[string]string{}, known: map[[sha256.Size]byte]bool{}}
	for line := range strings.Lines(htpasswd) {
		line = strings.TrimSpace(line)
		if name, hash, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			f.users[name] = hash
		}
	}
	return f
}

// Request implements l7.Filter.
func (f *Filter) Request(x *l7.Exchange) *l7.Reply {
	if f.allows(x.Request.Header.Get("authorization")) {
		return nil
	}
	return &l7.Reply{
		Status: 401, Body: "401 Authorization Required", Flag: l7.FlagDenied, Details: "basic_auth",
		Header: l7.Header{{Name: "WWW-Authenticate", Value: `Basic realm="` + strings.ReplaceAll(f.realm, `"`, `'`) + `"`}},
	}
}

func (f *Filter) allows(authorization string) bool {
	scheme, encoded, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "basic") {
		return false
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return false
	}
	sum := sha256.Sum256(raw)
	f.mu.Lock()
	known := f.known[sum]
	f.mu.Unlock()
	if known {
		return true
	}
	name, password, ok := strings.Cut(string(raw), ":")
	hash, exists := f.users[name]
	if !ok || !exists || !correct(hash, password) {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxKnown {
		clear(f.known)
	}
	f.known[sum] = true
	return true
}

func correct(hash, password string) bool {
	switch {
	case strings.HasPrefix(hash, "$2"):
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
	case strings.HasPrefix(hash, "{SHA}"):
		sum := sha1.Sum([]byte(password)) //nolint:gosec // a format of htpasswd
		return subtle.ConstantTimeCompare([]byte(hash[5:]), []byte(base64.StdEncoding.EncodeToString(sum[:]))) == 1
	case strings.HasPrefix(hash, "$apr1$"):
		return subtle.ConstantTimeCompare([]byte(hash), []byte(apr1(password, hash))) == 1
	case strings.HasPrefix(hash, "{PLAIN}"):
		return subtle.ConstantTimeCompare([]byte(hash[7:]), []byte(password)) == 1
	default:
		return false
	}
}
