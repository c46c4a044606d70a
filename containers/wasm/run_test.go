package wasm_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/periplus/periplus/containers/wasm"
	"github.com/periplus/periplus/linux/porttest"
)

// program is small: what it imports is compiled each time that it is run.
const program = `package main

import (
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

func main() {
	switch os.Args[1] {
	case "show":
		in, _ := io.ReadAll(os.Stdin)
		file, _ := os.ReadFile("/etc/greeting")
		os.Stdout.WriteString(strings.Join([]string{os.Args[2], os.Args[3], os.Getenv("NAME"), os.Getenv("PERIPLUS_WASM_LISTEN"), string(in), string(file)}, " "))
		if err := os.WriteFile("/written", []byte("here"), 0o644); err != nil {
			os.Stderr.WriteString(err.Error())
		}
		os.Stderr.WriteString("written")
		os.Exit(3)
	case "spin":
		os.Stdout.WriteString("spinning")
		for {
		}
	case "serve":
		_ = syscall.SetNonblock(4, true) // other requests go on while one waits
		l, err := net.FileListener(os.NewFile(4, "socket"))
		if err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		os.Stdout.WriteString("serving")
		for {
			c, err := l.Accept()
			if err != nil {
				os.Exit(1)
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from wasm"))
			_ = c.Close()
		}
	}
}
`

// build compiles the program for WASI; Go can.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": program, "go.mod": "module program\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", "program.wasm", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestRun(t *testing.T) {
	t.Parallel()
	root := build(t)
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "greeting"), []byte("ahoy"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(ctx context.Context, env []string, out io.Writer, args ...string) (int, string, error) {
		var stderr bytes.Buffer
		code, err := wasm.Run(ctx, wasm.Config{Args: args, Env: env, Stdin: strings.NewReader("typed"), Stdout: out, Stderr: &stderr, Root: root})
		return code, stderr.String(), err
	}

	t.Run("world", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		code, stderr, err := run(t.Context(), []string{"NAME=value", wasm.ListenEnv + "="}, &out, "/program.wasm", "show", "a", "b")
		if err != nil || code != 3 || out.String() != "a b value  typed ahoy" || stderr != "written" {
			t.Errorf("code %d, %v: %q, %q", code, err, out.String(), stderr)
		}
		if b, err := os.ReadFile(filepath.Join(root, "written")); err != nil || string(b) != "here" {
			t.Errorf("what it wrote: %q, %v", b, err)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		go func() {
			_, _ = r.Read(make([]byte, 100))
			cancel()
			_, _ = io.Copy(io.Discard, r)
		}()
		if code, _, err := run(ctx, nil, w, "program.wasm", "spin"); code != 143 || err != nil {
			t.Errorf("code %d, %v", code, err)
		}
		_ = w.Close()
	})
	t.Run("serves", func(t *testing.T) {
		t.Parallel()
		address := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
		ctx, cancel := context.WithCancel(t.Context())
		r, w := io.Pipe()
		ended := make(chan int, 1)
		go func() {
			code, _, _ := run(ctx, []string{wasm.ListenEnv + "=" + address}, w, "/program.wasm", "serve")
			ended <- code
		}()
		if n, err := r.Read(make([]byte, 100)); err != nil || n == 0 {
			t.Fatal(err)
		}
		resp, err := http.Get("http://" + address)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(body) != "hello from wasm" {
			t.Errorf("%q", body)
		}
		cancel()
		<-ended
	})
	t.Run("faults", func(t *testing.T) {
		t.Parallel()
		if err := os.WriteFile(filepath.Join(root, "text"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			env, module string
			code        int
			message     string
		}{
			{"", "/missing.wasm", 127, "/missing.wasm: executable file not found"},
			{"", "/text", 126, "/text is not a WebAssembly module that can be run"},
			{wasm.ListenEnv + "=8080", "/program.wasm", 126, `"8080" is not an address like 0.0.0.0:8080`},
			{wasm.ListenEnv + "=:99999", "/program.wasm", 126, "the port must be a number up to 65535"},
		} {
			code, _, err := run(t.Context(), []string{c.env}, io.Discard, c.module)
			if code != c.code || err == nil || !strings.Contains(err.Error(), c.message) {
				t.Errorf("%s %s: code %d, %v", c.env, c.module, code, err)
			}
		}
	})
}
