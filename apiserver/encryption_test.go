package apiserver_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/encryption"
	"github.com/periplus/periplus/store/mem"
)

// TestKeyComesBack: Secrets of a key that is missing cannot be read, and can be as soon as
// the key is in the configuration, without another start. Watches begin anew.
func TestKeyComesBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	keys := func(names ...string) {
		t.Helper()
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n  - aesgcm:\n      keys:\n"
		for _, n := range names {
			text += fmt.Sprintf("      - {name: %s, secret: %s}\n", n, base64.StdEncoding.EncodeToString([]byte(strings.Repeat(n[:1], 32))))
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	kept := mem.New()
	set := func(c *apiserver.Config) {
		c.Store, c.Encryption = kept, encryption.Config{File: file, Reload: true}
	}
	keys("a")
	t.Run("before", func(t *testing.T) {
		_, c := startWith(t, set)
		for _, name := range []string{"one", "two"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"k": name}}
			if _, err := c.CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	keys("b")
	s, c := startWith(t, set)
	ctx, secrets := t.Context(), c.CoreV1().Secrets("default")
	if _, err := secrets.Get(ctx, "one", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "unable to transform key") {
		t.Fatalf("without its key: %v", err)
	}
	if _, err := secrets.List(ctx, metav1.ListOptions{}); err == nil {
		t.Fatal("the list is complete without the key")
	}
	w, err := secrets.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	keys("b", "a")
	if err := s.Encryption().Reload(); err != nil {
		t.Fatal(err)
	}
	one, err := secrets.Get(ctx, "one", metav1.GetOptions{})
	if err != nil || string(one.Data["k"]) != "one" {
		t.Errorf("%v, %v", one, err)
	}
	list, err := secrets.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("%d secrets, %v", len(list.Items), err)
	}
	for range w.ResultChan() { // it ends
	}
	one.StringData = map[string]string{"k": "new"}
	if _, err := secrets.Update(ctx, one, metav1.UpdateOptions{}); err != nil {
		t.Error(err)
	}
}
