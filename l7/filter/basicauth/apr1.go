package basicauth

import (
	"crypto/md5" //nolint:gosec // the format of htpasswd's default
	"strings"
)

// apr1 computes Apache's variant of MD5 crypt, with the salt of a hash:
// $apr1$salt$digest.
func apr1(password, hash string) string {
	const magic = "$apr1$"
	salt, _, _ := strings.Cut(strings.TrimPrefix(hash, magic), "$")
	if len(salt) > 8 {
		salt = salt[:8]
	}
	alternate := md5.Sum([]byte(password + salt + password)) //nolint:gosec // see above
	first := []byte(password + magic + salt)
	for n := len(password); n > 0; n -= 16 {
		first = append(first, alternate[:min(n, 16)]...)
	}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 == 1 {
			first = append(first, 0)
		} else {
			first = append(first, password[0])
		}
	}
	digest := md5.Sum(first) //nolint:gosec // see above
	for i := range 1000 {
		var b []byte
		if i&1 == 1 {
			b = append(b, password...)
		} else {
			b = append(b, digest[:]...)
		}
		if i%3 != 0 {
			b = append(b, salt...)
		}
		if i%7 != 0 {
			b = append(b, password...)
		}
		if i&1 == 1 {
			b = append(b, digest[:]...)
		} else {
			b = append(b, password...)
		}
		digest = md5.Sum(b) //nolint:gosec // see above
	}
	const letters = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	var out []byte
	put := func(v uint, n int) {
		for range n {
			out = append(out, letters[v&63])
			v >>= 6
		}
	}
	for i := range 5 {
		c := i + 12
		if c == 16 {
			c = 5
		}
		put(uint(digest[i])<<16|uint(digest[i+6])<<8|uint(digest[c]), 4)
	}
	put(uint(digest[11]), 2)
	return magic + salt + "$" + string(out)
}
