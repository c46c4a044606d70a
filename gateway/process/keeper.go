package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/periplus/periplus/base"
)

// How long to wait before a process that has ended is started again.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// ReadyEnv names the descriptor on which a process that was started says that it serves.
const ReadyEnv = "PERI_GATEWAY_READY_FD"

// KeeperConfig says how a gateway is started.
type KeeperConfig struct {
	// Socket is where it answers, Fingerprint what it is to say.
	Socket, Fingerprint string
	// Command makes the command that starts it. Output is the file for what it prints.
	Command func() (*exec.Cmd, error)
	Output  string
	// Taken is told which ports it could not open; nil: nobody is.
	Taken func(map[int]error)
	Log   *slog.Logger
}

// A Keeper has a gateway run whenever one is wanted.
type Keeper struct {
	cfg  KeeperConfig
	kick chan struct{} // wanted has changed

	mu     sync.Mutex // guards wanted
	wanted *bool      // nil: not known yet
}

// NewKeeper returns a Keeper that does nothing until Run.
func NewKeeper(cfg KeeperConfig) *Keeper {
	return &Keeper{cfg: cfg, kick: make(chan struct{}, 1)}
}

// Want says whether a gateway is wanted. Before the first call one that runs is left alone.
func (k *Keeper) Want(yes bool) {
	k.mu.Lock()
	same := k.wanted != nil && *k.wanted == yes
	k.wanted = &yes
	k.mu.Unlock()
	if same {
		return
	}
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

func (k *Keeper) want() (yes, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wanted != nil && *k.wanted, k.wanted != nil
}

// Run keeps the gateway until ctx ends; the gateway goes on then.
func (k *Keeper) Run(ctx context.Context) error {
	pause := firstPause
	var again <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.kick:
		case <-again:
		}
		again = nil
		yes, known := k.want()
		if !known {
			continue
		}
		if !yes {
			if err := Stop(ctx, k.cfg.Socket); err != nil && ctx.Err() == nil {
				k.cfg.Log.Warn("The gateway, which is not needed any more, cannot be ended", base.KeyError, err)
			}
			continue
		}
		began := time.Now()
		err := k.keep(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if yes, _ := k.want(); !yes {
			k.again()
			continue
		}
		if time.Since(began) > lastPause {
			pause = firstPause
		}
		k.cfg.Log.Warn("The gateway has ended and is started again", base.KeyError, err, "after", pause)
		again = time.After(pause)
		pause = min(2*pause, lastPause)
	}
}

func (k *Keeper) again() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// keep returns when the gateway has ended, or is not wanted any more.
func (k *Keeper) keep(ctx context.Context) error {
	conn, r, s, err := k.find(ctx)
	if err == nil && s.Fingerprint != k.cfg.Fingerprint {
		k.cfg.Log.Info("The gateway is of another version or configuration: another takes its place", "pid", s.PID)
		_ = conn.Close()
		err = errors.New("another version")
	}
	if err != nil {
		if err := k.start(ctx); err != nil {
			return err
		}
		if conn, r, s, err = k.find(ctx); err != nil {
			return err
		}
	}
	defer conn.Close()
	done := make(chan struct{})
	defer close(done)
	go func() { // a connection has no other way to be interrupted
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				_ = conn.Close()
				return
			case <-k.kick:
				if yes, _ := k.want(); !yes {
					_ = conn.Close()
					return
				}
			}
		}
	}()
	for {
		if k.cfg.Taken != nil {
			taken := map[int]error{}
			for port, why := range s.Taken {
				taken[port] = errors.New(why)
			}
			k.cfg.Taken(taken)
		}
		if s, err = hear(r); err != nil {
			return err
		}
	}
}

// find connects to the gateway that runs.
func (k *Keeper) find(ctx context.Context) (net.Conn, *bufio.Reader, *state, error) {
	conn, err := (&net.Dialer{Timeout: takeOver}).DialContext(ctx, "unix", k.cfg.Socket)
	if err != nil {
		return nil, nil, nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(takeOver)) // a Unix socket has deadlines
	err = say(conn, wordState)
	r := bufio.NewReader(conn)
	var s *state
	if err == nil {
		s, err = hear(r)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, r, s, nil
}

// start starts a gateway and returns when it serves.
func (k *Keeper) start(ctx context.Context) error {
	cmd, err := k.cfg.Command()
	if err != nil {
		return err
	}
	report, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()
	output, err := k.output()
	if err != nil {
		return errors.Join(err, theirs.Close())
	}
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{theirs}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, ReadyEnv+"=3")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = theirs.Close()
	_ = output.Close()
	if err != nil {
		return fmt.Errorf("start the gateway: %w", err)
	}
	go func() { _ = cmd.Wait() }() // so that it does not stay as a zombie; its connection tells of its end
	stop := context.AfterFunc(ctx, func() { _ = report.Close() })
	defer stop()
	if _, err := bufio.NewReader(report).ReadString('\n'); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("the gateway ended before it served: see its log")
	}
	return nil
}

// maxOutput is how large the file may be before it is begun anew.
const maxOutput = 4 << 20

func (k *Keeper) output() (*os.File, error) {
	if info, err := os.Stat(k.cfg.Output); err == nil && info.Size() > maxOutput {
		if err := os.Remove(k.cfg.Output); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(k.cfg.Output), 0o750); err != nil {
		return nil, err
	}
	return os.OpenFile(k.cfg.Output, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// Announce tells the peri that has started this process that it serves.
func Announce() {
	fd, err := strconv.Atoi(os.Getenv(ReadyEnv))
	if err != nil {
		return // started by hand
	}
	f := os.NewFile(uintptr(fd), "ready") //nolint:gosec // a descriptor
	_, _ = f.WriteString("ready\n")       // if nobody reads it, nobody waits
	_ = f.Close()
}

// Stop ends the gateway that answers at socket, if there is one, and returns when it has ended.
func Stop(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{Timeout: takeOver}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := say(conn, wordDrain); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
