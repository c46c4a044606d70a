package basicauth_test

import (
	"encoding/base64"
	"testing"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/filter/basicauth"
)

func TestPasswords(t *testing.T) {
	t.Parallel()
	f := basicauth.New("realm", `
plain:{PLAIN}secret
sha:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=
apr:$apr1$12345678$0lqb/6VUFP8JY/s/jTrIk0
crypt:$2a$04$wrong
`)
	for credentials, want := range map[string]bool{"plain:secret": true, "plain:wrong": false, "sha:secret": true, "apr:secret": true, "apr:wrong": false, "nobody:secret": false, "crypt:secret": false, "": false} {
		for range 2 { // the second time from memory
			x := &l7.Exchange{}
			x.Request.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(credentials)))
			if got := f.Request(x) == nil; got != want {
				t.Errorf("%s: let in %t, want %t", credentials, got, want)
			}
		}
	}
}
