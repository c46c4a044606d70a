package process_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/periplus/periplus/gateway/process"
	"github.com/periplus/periplus/l7"
)

// limit bounds a wait that takes milliseconds.
const limit = time.Minute

// socketEnv makes this test binary a gateway that answers at the socket.
const socketEnv = "PERIPLUS_TEST_GATEWAY"

func TestMain(m *testing.M) {
	if socket := os.Getenv(socketEnv); socket != "" {
		c := process.NewChild(socket, os.Getenv(socketEnv+"_PRINT"), slog.New(slog.DiscardHandler))
		c.Applied(map[int]error{os.Getpid(): errors.New("its number")})
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-c.Drained()
			cancel()
		}()
		if err := c.Run(ctx, process.Announce); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(limit):
		t.Fatalf("%s does not come", what)
		panic("unreachable")
	}
}

func TestSocketsChangeHands(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "gateway.sock")
	listener := &l7.Listener{Name: "web", Address: "127.0.0.1:0"}
	run := func(c *process.Child) {
		announced := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := c.Run(ctx, func() { close(announced) }); err != nil {
				t.Error(err)
			}
		})
		t.Cleanup(func() { cancel(); running.Wait() })
		c.Applied(nil)
		wait(t, "the socket", announced)
	}
	serve := func(c *process.Child, name string) (net.Listener, string) {
		l, err := c.Listen(t.Context(), listener)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{ReadHeaderTimeout: limit, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, name)
		})}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
		return l, l.Addr().String()
	}

	// Somebody asks all the time.
	one := process.NewChild(socket, "1", slog.New(slog.DiscardHandler))
	first, address := serve(one, "one")
	run(one)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	defer clients.Wait()
	defer cancel()
	answered := make(chan string)
	for range 4 {
		clients.Go(func() {
			for ctx.Err() == nil {
				resp, err := http.Get("http://" + address + "/") //nolint:noctx // short
				if err != nil {
					t.Errorf("a client was refused: %v", err)
					return
				}
				name := make([]byte, 3)
				_, _ = resp.Body.Read(name)
				_ = resp.Body.Close()
				select {
				case answered <- string(name):
				case <-ctx.Done():
				}
			}
		})
	}
	wait(t, "an answer", answered)

	two := process.NewChild(socket, "2", slog.New(slog.DiscardHandler))
	_, same := serve(two, "two")
	if same != address {
		t.Fatalf("the successor listens at %s, not at %s", same, address)
	}
	select {
	case <-one.Drained():
		t.Fatal("it was told to go before there was another")
	default:
	}
	run(two)
	wait(t, "the word to drain", one.Drained())
	// Not Server.Shutdown: that drops who connected a moment ago.
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for wait(t, "the successor's answer", answered) != "two" { //nolint:revive // until it has answered
	}
	if _, err := net.Dial("unix", socket); err != nil { //nolint:noctx // local
		t.Errorf("nobody at the socket: %v", err)
	}
}

func TestKeeper(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "gateway.sock")
	pids := make(chan int, 10)
	keeper := func(fingerprint string) (k *process.Keeper, end func()) {
		k = process.NewKeeper(process.KeeperConfig{
			Socket: socket, Fingerprint: fingerprint, Output: filepath.Join(dir, "log"), Log: slog.New(slog.DiscardHandler),
			Command: func() (*exec.Cmd, error) {
				cmd := exec.Command("/proc/self/exe") //nolint:noctx // it outlives the keeper
				cmd.Env = append(os.Environ(), socketEnv+"="+socket, socketEnv+"_PRINT="+fingerprint)
				return cmd, nil
			},
			Taken: func(taken map[int]error) {
				for pid := range taken {
					pids <- pid
				}
			},
		})
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { _ = k.Run(ctx) })
		end = sync.OnceFunc(func() { cancel(); running.Wait() })
		t.Cleanup(end)
		return k, end
	}
	t.Cleanup(func() { _ = process.Stop(context.Background(), socket) })

	// It is started, and again when it has been killed.
	k, end := keeper("1")
	k.Want(true)
	first := wait(t, "a gateway", pids)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := wait(t, "another gateway", pids)
	if second == first {
		t.Fatal("the same process")
	}
	// It outlives its keeper, and the next one finds it.
	end()
	k, end = keeper("1")
	k.Want(true)
	if again := wait(t, "the gateway", pids); again != second {
		t.Fatalf("process %d became %d", second, again)
	}
	end()
	// One of another version takes its place.
	k, _ = keeper("2")
	k.Want(true)
	third := wait(t, "the successor", pids)
	if third == second {
		t.Fatal("the old process goes on")
	}
	// And it ends when it is not needed.
	watched, err := net.Dial("unix", socket) //nolint:noctx // local
	if err != nil {
		t.Fatal(err)
	}
	defer watched.Close()
	k.Want(false)
	if _, err := watched.Read(make([]byte, 1)); err == nil {
		t.Error("it says something")
	}
}
