package audit_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/periplus/periplus/apiserver/audit"
)

// TestCompressed: full files are compressed in the background, also those that are there
// from before; as many stay as are wanted.
func TestCompressed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.log")
	synctest.Test(t, func(t *testing.T) {
		a, end := open(t, func(o *audit.Options) {
			o.LogPath, o.LogMaxSize, o.LogMaxBackup, o.LogCompress = path, 1, 3, true
		})
		for i := range 70 { // of 100 KB each
			one(t, a, fmt.Sprintf("/x%d", i))
			synctest.Wait()
		}
		end()
	})
	files, err := filepath.Glob(filepath.Join(dir, "audit-*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%v, %v; want three old files", files, err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 || !strings.HasSuffix(f, ".log.gz") || info.Size() > 100<<10 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
		in, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(unpacked)
		lines.Buffer(nil, 1<<20)
		n := 0
		for ; lines.Scan(); n++ {
			e := auditv1.Event{}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Kind != "Event" {
				t.Errorf("%s: %v", f, err)
			}
		}
		if n != 10 || lines.Err() != nil {
			t.Errorf("%s: %d events, %v", f, n, lines.Err())
		}
		_ = in.Close()
	}
}

// TestShortened: an event that is too large for the log loses its objects.
func TestShortened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.log")
	a, end := open(t, func(o *audit.Options) {
		o.LogPath, o.LogTruncate, o.LogTruncateEach = path, true, 1000
	})
	one(t, a, "/small") // with an annotation that is too large by itself: lost
	r, s := asked("POST", "/api/v1/namespaces/n/configmaps")
	rec, err := a.Begin(r, s, false)
	if err != nil {
		t.Fatal(err)
	}
	rec.Request([]byte(`{"data":{"x":"` + strings.Repeat("y", 2000) + `"}}`))
	rec.End()
	end()
	data, err := os.ReadFile(path)
	if lines := strings.Count(string(data), "\n"); err != nil || lines != 1 || !strings.Contains(string(data), `"audit.k8s.io/truncated":"true"`) || strings.Contains(string(data), "yyy") {
		t.Errorf("%s, %v", data, err)
	}
}

// TestThrottled: batches are written no faster than it is wanted.
func TestThrottled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "audit.log")
		a, end := open(t, func(o *audit.Options) {
			o.LogPath, o.LogMode, o.LogBatch, o.LogThrottle, o.LogQPS, o.LogBurst = path, "batch", 1, true, 2, 1
			o.BatchWait = metav1.Duration{Duration: time.Second}
		})
		for range 5 {
			one(t, a, "/x")
		}
		count := func() int {
			synctest.Wait()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Count(string(data), "\n")
		}
		if n := count(); n != 1 {
			t.Errorf("%d events at once, want one", n)
		}
		<-time.After(1100 * time.Millisecond) // of the test's own clock
		if n := count(); n != 3 {
			t.Errorf("%d events after a second, want three", n)
		}
		end()
		if n := count(); n != 5 {
			t.Errorf("%d events at the end", n)
		}
		if a.Counts.Events.Load() != 5 || a.Counts.Errors.Buffered.Load() != 0 {
			t.Errorf("%d events, %d lost", a.Counts.Events.Load(), a.Counts.Errors.Buffered.Load())
		}
	})
}
