package authn

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

const (
	// guesses is how many wrong credentials an address may present at once, and
	// guessesPerSecond how many go on being looked at.
	guesses          = 100
	guessesPerSecond = 10
	// remembered bounds how many addresses, and how many tokens that were right, are known.
	remembered = 4096
)

// A SlowDownError is returned to an address that has presented too many wrong credentials.
type SlowDownError struct{ Address string }

func (e *SlowDownError) Error() string {
	return fmt.Sprintf("too many failed authentications from %s, please try again later", e.Address)
}

// A Guard limits how fast an address can guess credentials: once it has presented many
// wrong ones, further tokens from it are not looked at faster than ten a second. Tokens
// that were right a moment ago always are, so that a broken client does not shut out
// those that share its address.
type Guard struct {
	mu    sync.Mutex // guards wrong's limiters being made
	wrong *lru.Cache // *rate.Limiter by address
	right *lru.Cache // by hash of a token
}

// NewGuard returns a guard that has seen nobody.
func NewGuard() *Guard { return &Guard{wrong: lru.New(remembered), right: lru.New(remembered)} }

// presented is a hash of the token that a request carries; the zero value: none.
type presented [sha256.Size]byte

func (g *Guard) credentials(r *http.Request) presented {
	if g == nil {
		return presented{}
	}
	if h := r.Header.Get("Authorization"); h != "" {
		return sha256.Sum256([]byte(h))
	}
	if h := r.Header.Get("Sec-Websocket-Protocol"); h != "" {
		return sha256.Sum256([]byte(h))
	}
	return presented{}
}

func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// admit returns an error when a request's token is not to be looked at.
func (g *Guard) admit(r *http.Request, p presented) error {
	if g == nil || p == (presented{}) || g.wrong.Len() == 0 {
		return nil
	}
	address := addressOf(r)
	l, ok := g.wrong.Get(address)
	if !ok || l.(*rate.Limiter).TokensAt(time.Now()) >= 1 {
		return nil
	}
	if _, ok := g.right.Get(p); ok {
		return nil
	}
	return &SlowDownError{address}
}

// known remembers a token that was right.
func (g *Guard) known(p presented) {
	if g == nil || p == (presented{}) {
		return
	}
	if _, ok := g.right.Get(p); !ok {
		g.right.Add(p, struct{}{})
	}
}

// failed counts wrong credentials of an address.
func (g *Guard) failed(r *http.Request) {
	if g == nil {
		return
	}
	address := addressOf(r)
	g.mu.Lock()
	l, ok := g.wrong.Get(address)
	if !ok {
		l = rate.NewLimiter(guessesPerSecond, guesses)
		g.wrong.Add(address, l)
	}
	g.mu.Unlock()
	l.(*rate.Limiter).Allow()
}
