package encryption_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kms/pkg/service"

	"github.com/periplus/periplus/apiserver/encryption"
	"github.com/periplus/periplus/store"
	"github.com/periplus/periplus/store/mem"
)

const secretKey = "/registry/secrets/default/a"

func key(fill byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32)) }

func write(t *testing.T, path, resources string, providers ...string) {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [" + resources + "]\n  providers:\n"
	for _, p := range providers {
		text += "  - " + p + "\n"
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func aesgcm(names ...string) string {
	var keys []string
	for _, n := range names {
		keys = append(keys, fmt.Sprintf("{name: %s, secret: %s}", n, key(n[len(n)-1])))
	}
	return "aesgcm: {keys: [" + strings.Join(keys, ", ") + "]}"
}

func resourceOf(key string) schema.GroupResource {
	parts := strings.Split(strings.TrimPrefix(key, "/registry/"), "/")
	if strings.Contains(parts[0], ".") {
		return schema.GroupResource{Group: parts[0], Resource: parts[1]}
	}
	return schema.GroupResource{Resource: parts[0]}
}

func open(t *testing.T, inner store.Store, path string) *encryption.Store {
	t.Helper()
	s, err := encryption.New(inner, encryption.Config{File: path, Reload: true, Resource: resourceOf, Server: "test", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.End)
	return s
}

// TestProviders: what is stored begins as upstream writes it, and nothing of the plain
// text is in it.
func TestProviders(t *testing.T) {
	t.Parallel()
	plain := []byte("k8s\x00the secret text")
	for _, c := range []struct{ provider, resources, key, want string }{
		{aesgcm("key1"), "secrets", secretKey, "k8s:enc:aesgcm:v1:key1:"},
		{"aescbc: {keys: [{name: key1, secret: " + key(1) + "}]}", "secrets", secretKey, "k8s:enc:aescbc:v1:key1:"},
		{"secretbox: {keys: [{name: key1, secret: " + key(1) + "}]}", "secrets", secretKey, "k8s:enc:secretbox:v1:key1:"},
		{"identity: {}", "secrets", secretKey, "k8s\x00the secret text"},
		{aesgcm("key1"), "secrets", "/registry/configmaps/default/a", "k8s\x00the secret text"},
		{aesgcm("key1"), "'*.*'", "/registry/configmaps/default/a", "k8s:enc:aesgcm:v1:key1:"},
		{aesgcm("key1"), "'*.example.com'", "/registry/example.com/widgets/default/a", "k8s:enc:aesgcm:v1:key1:"},
		{aesgcm("key1"), "'*.'", "/registry/example.com/widgets/default/a", "k8s\x00the secret text"},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		write(t, path, c.resources, c.provider)
		inner := mem.New()
		s := open(t, inner, path)
		if _, err := s.Create(t.Context(), c.key, plain); err != nil {
			t.Fatal(err)
		}
		raw, err := inner.Get(t.Context(), c.key)
		if err != nil || !bytes.HasPrefix(raw.Value, []byte(c.want)) || strings.HasPrefix(c.want, "k8s:enc") && bytes.Contains(raw.Value, []byte("secret text")) {
			t.Errorf("%s of %s: stored %q, %v", c.provider[:8], c.resources, raw.Value, err)
		}
		got, err := s.Get(t.Context(), c.key)
		if err != nil || !bytes.Equal(got.Value, plain) {
			t.Errorf("%s: read %q, %v", c.provider[:8], got.Value, err)
		}
	}
}

// TestRotation: a new first key writes, the old one is read; entries of the old one are stale.
func TestRotation(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "config.yaml")
	inner := mem.New()
	if _, err := inner.Create(ctx, secretKey, []byte("plain")); err != nil {
		t.Fatal(err)
	}
	write(t, path, "secrets", aesgcm("key1"), "identity: {}")
	s := open(t, inner, path)
	rewrite := func(prefix string) {
		t.Helper()
		if !s.Stale(ctx, secretKey) {
			t.Error("the entry is not stale")
		}
		e, err := s.Get(ctx, secretKey)
		if err != nil || string(e.Value) != "plain" {
			t.Fatalf("%q, %v", e.Value, err)
		}
		if _, err := s.Update(ctx, secretKey, e.Value, e.Mod); err != nil {
			t.Fatal(err)
		}
		if raw, _ := inner.Get(ctx, secretKey); !bytes.HasPrefix(raw.Value, []byte(prefix)) || s.Stale(ctx, secretKey) {
			t.Errorf("after the write: %q, stale %v", raw.Value, s.Stale(ctx, secretKey))
		}
	}
	rewrite("k8s:enc:aesgcm:v1:key1:")
	write(t, path, "secrets", aesgcm("key2", "key1"))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	rewrite("k8s:enc:aesgcm:v1:key2:")
	write(t, path, "secrets", "identity: {}", aesgcm("key2"))
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	rewrite("plain")
	// A file that is not valid changes nothing.
	write(t, path, "secrets", "aesgcm: {keys: [{name: key1, secret: c2hvcnQ=}]}")
	if err := s.Reload(); err == nil {
		t.Error("a key that is too short is accepted")
	}
	if e, err := s.Get(ctx, secretKey); err != nil || string(e.Value) != "plain" {
		t.Errorf("after a bad file: %q, %v", e.Value, err)
	}
}

// TestUnreadable: entries of an unknown key, or moved to another name, are told of.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "config.yaml")
	inner := mem.New()
	write(t, path, "secrets", aesgcm("key1"))
	if _, err := open(t, inner, path).Create(ctx, secretKey, []byte("plain")); err != nil {
		t.Fatal(err)
	}
	write(t, path, "secrets", aesgcm("key2"))
	s := open(t, inner, path)
	if _, err := s.Get(ctx, secretKey); err == nil || !strings.Contains(err.Error(), `unable to transform key "/registry/secrets/default/a"`) {
		t.Errorf("an unknown key: %v", err)
	}
	if _, err := s.List(ctx, "/registry/", store.ListOptions{}); err != nil || s.Unreadable("/registry/secrets/default/") == nil || s.Unreadable("/registry/pods/") != nil {
		t.Errorf("list: %v, %v", err, s.Unreadable("/registry/"))
	}
	raw, _ := inner.Get(ctx, secretKey)
	if _, err := inner.Create(ctx, "/registry/secrets/default/b", raw.Value); err != nil {
		t.Fatal(err)
	}
	write(t, path, "secrets", aesgcm("key1"))
	s = open(t, inner, path)
	if _, err := s.Get(ctx, "/registry/secrets/default/b"); err == nil {
		t.Error("a value is read under another name than its own")
	}
}

// keyService is a KMS v2 plug-in that hides what it is given by turning its bits.
type keyService struct{ id string }

func (k keyService) Status(context.Context) (*service.StatusResponse, error) {
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: k.id}, nil
}

func (k keyService) Encrypt(_ context.Context, _ string, data []byte) (*service.EncryptResponse, error) {
	return &service.EncryptResponse{Ciphertext: turn(data), KeyID: k.id}, nil
}

func (k keyService) Decrypt(_ context.Context, _ string, r *service.DecryptRequest) ([]byte, error) {
	if r.KeyID != k.id {
		return nil, errors.New("unknown key")
	}
	return turn(r.Ciphertext), nil
}

func turn(data []byte) []byte {
	out := bytes.Clone(data)
	for i := range out {
		out[i] ^= 0xff
	}
	return out
}

func TestKMS(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "kms") //nolint:usetesting // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	plugin := service.NewGRPCService(socket, time.Minute, keyService{"1"})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = plugin.ListenAndServe() // ended by Shutdown
	}()
	t.Cleanup(func() {
		plugin.Shutdown()
		<-served
	})
	path := filepath.Join(dir, "config.yaml")
	write(t, path, "secrets", "kms: {apiVersion: v2, name: ks, endpoint: 'unix://"+socket+"', timeout: 30s}")
	inner := mem.New()
	s := open(t, inner, path)
	for s.Check(t.Context()) != nil && t.Context().Err() == nil { // the plug-in begins to listen meanwhile
	}
	if _, err := s.Create(t.Context(), secretKey, []byte("plain")); err != nil {
		t.Fatal(err)
	}
	if raw, _ := inner.Get(t.Context(), secretKey); !bytes.HasPrefix(raw.Value, []byte("k8s:enc:kms:v2:ks:")) {
		t.Errorf("stored %q", raw.Value)
	}
	if e, err := open(t, inner, path).Get(t.Context(), secretKey); err != nil || string(e.Value) != "plain" {
		t.Errorf("another server reads %q, %v", e.Value, err)
	}
}
