package surface_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestServed sends a request to every path with every method. What is not there
// is answered in one of two ways, and neither must come: that there is no such
// resource, or that it has no such verb. Objects named in paths do not exist.
func TestServed(t *testing.T) {
	t.Parallel()
	c := start(t)
	h := httpClient(t, c)
	paths := strings.NewReplacer("{namespace}", "default", "{name}", "absent", "{path}", "x", "{logpath}", "x")
	for _, op := range operations(t) {
		t.Run(op.method+op.path, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, op.method, c.Host+paths.Replace(op.path)+"?dryRun=All", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := h.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			action, _, _ := strings.Cut(op.about, " ")
			if strings.HasPrefix(action, "watch") || action == "list" {
				if resp.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", op, resp.Status)
				}
				return
			}
			body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			var status metav1.Status
			_ = json.Unmarshal(body, &status) // not everything is
			if resp.StatusCode == http.StatusMethodNotAllowed || strings.Contains(status.Message, "could not find the requested resource") {
				t.Errorf("%s: %s", op, body)
			}
			if resp.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s: %s", op, body)
			}
			if op.about == "" && !strings.HasPrefix(op.path, "/logs/") && resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", op, resp.Status)
			}
		})
	}
}
