package serviceaccount

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/golang-jwt/jwt/v5"
)

// A Key verifies tokens.
type Key struct {
	ID     string
	Public crypto.PublicKey
	method jwt.SigningMethod
}

// KeyOf returns the key of a public RSA or ECDSA key.
func KeyOf(public crypto.PublicKey) (Key, error) {
	id, err := keyID(public)
	if err != nil {
		return Key{}, err
	}
	k := Key{ID: id, Public: public}
	switch p := public.(type) {
	case *rsa.PublicKey:
		k.method = jwt.SigningMethodRS256
	case *ecdsa.PublicKey:
		switch p.Curve {
		case elliptic.P256():
			k.method = jwt.SigningMethodES256
		case elliptic.P384():
			k.method = jwt.SigningMethodES384
		case elliptic.P521():
			k.method = jwt.SigningMethodES512
		}
	}
	if k.method == nil {
		return Key{}, fmt.Errorf("a %T cannot verify tokens: must be RSA, or ECDSA with curve P-256, P-384 or P-521", public)
	}
	return k, nil
}

// keyID is how keys are named in tokens and in the JWKS document: the base64 of
// the SHA-256 of the public key in PKIX form.
func keyID(key crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return "", fmt.Errorf("name the public key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// ParseKeys reads the keys of a PEM file: public keys, certificates, and the public
// halves of private keys.
func ParseKeys(text []byte) ([]Key, error) {
	var out []Key
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		public, err := publicOf(block)
		if err != nil {
			return nil, err
		}
		if public == nil {
			continue
		}
		k, err := KeyOf(public)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	if len(out) == 0 {
		return nil, errors.New("data does not contain any valid RSA or ECDSA public keys")
	}
	return out, nil
}

func publicOf(block *pem.Block) (crypto.PublicKey, error) {
	switch block.Type {
	case "CERTIFICATE":
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return c.PublicKey, nil
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	}
	private, err := privateOf(block)
	if private == nil || err != nil {
		return nil, err
	}
	return private.Public(), nil
}

func privateOf(block *pem.Block) (crypto.Signer, error) {
	var key any
	var err error
	switch block.Type {
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T cannot sign", key)
	}
	return signer, nil
}

// ParseSigner reads the first private key of a PEM file.
func ParseSigner(text []byte) (crypto.Signer, error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, errors.New("data does not contain a valid RSA or ECDSA private key")
		}
		if s, err := privateOf(block); s != nil || err != nil {
			return s, err
		}
	}
}

// Keys verify tokens, by ID.
type Keys []Key

// With returns the keys and another, unless it is among them.
func (k Keys) With(other Key) Keys {
	if slices.ContainsFunc(k, func(o Key) bool { return o.ID == other.ID }) {
		return k
	}
	return append(slices.Clip(k), other)
}

// pick returns the keys that may have signed a token: the one that it names, or all of
// the algorithm if it names none that is known.
func (k Keys) pick(t *jwt.Token) (any, error) {
	id, _ := t.Header["kid"].(string)
	var set jwt.VerificationKeySet
	for i := range k {
		if k[i].method.Alg() != t.Method.Alg() && !sameFamily(k[i].method, t.Method) {
			continue
		}
		if k[i].ID == id {
			return k[i].Public, nil
		}
		set.Keys = append(set.Keys, k[i].Public)
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("no key of this algorithm is known")
	}
	return set, nil
}

// sameFamily: RSA keys verify all of RS256, RS384 and RS512.
func sameFamily(a, b jwt.SigningMethod) bool {
	_, first := a.(*jwt.SigningMethodRSA)
	_, second := b.(*jwt.SigningMethodRSA)
	return first && second
}

// Algorithms are the algorithms of the keys.
func (k Keys) Algorithms() []string {
	var out []string
	for i := range k {
		out = append(out, k[i].method.Alg())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A JWK is a key as others read it (RFC 7517).
type JWK struct {
	Use       string `json:"use"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Curve     string `json:"crv,omitempty"`
	Algorithm string `json:"alg"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	N         string `json:"n,omitempty"`
	E         string `json:"e,omitempty"`
}

// JWKS are the keys as others read them.
func (k Keys) JWKS() []JWK {
	encode := base64.RawURLEncoding.EncodeToString
	out := []JWK{}
	for i := range k {
		j := JWK{Use: "sig", ID: k[i].ID, Algorithm: k[i].method.Alg()}
		switch p := k[i].Public.(type) {
		case *rsa.PublicKey:
			j.Type, j.N, j.E = "RSA", encode(p.N.Bytes()), encode(big.NewInt(int64(p.E)).Bytes())
		case *ecdsa.PublicKey:
			point, err := p.Bytes()
			if err != nil {
				continue
			}
			// An uncompressed point: 4, then x and y of the same length.
			half := (len(point) - 1) / 2
			j.Type, j.Curve, j.X, j.Y = "EC", p.Curve.Params().Name, encode(point[1:1+half]), encode(point[1+half:])
		}
		out = append(out, j)
	}
	slices.SortFunc(out, func(a, b JWK) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
