package static

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Tokens are users by the hash of their token: a look-up tells nothing about the token.
type Tokens map[[sha256.Size]byte]*user.DefaultInfo

var _ authenticator.Token = Tokens{}

// Read reads a token file.
func Read(path string) (Tokens, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	t, err := parse(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// parse reads lines. Errors name a line and never what is in it.
func parse(in io.Reader) (Tokens, error) {
	out := Tokens{}
	r := csv.NewReader(in)
	r.FieldsPerRecord = -1
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return nil, fmt.Errorf("line %d: %w", parse.Line, parse.Err)
		}
		if err != nil {
			return nil, err
		}
		line, _ := r.FieldPos(0)
		if len(record) < 3 {
			return nil, fmt.Errorf("line %d has %d columns, want at least 3: token, user name, user uid", line, len(record))
		}
		token := strings.TrimSpace(record[0])
		if token == "" {
			continue
		}
		key := sha256.Sum256([]byte(token))
		if out[key] != nil {
			return nil, fmt.Errorf("line %d has a token that another line has, too", line)
		}
		u := &user.DefaultInfo{Name: strings.TrimSpace(record[1]), UID: strings.TrimSpace(record[2])}
		if len(record) >= 4 && record[3] != "" {
			u.Groups = strings.Split(record[3], ",")
		}
		out[key] = u
	}
}

// AuthenticateToken implements authenticator.Token.
func (t Tokens) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	u, ok := t[sha256.Sum256([]byte(token))]
	if !ok {
		return nil, false, nil
	}
	return &authenticator.Response{User: u}, true, nil
}
