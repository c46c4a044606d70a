package monitor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/periplus/periplus/linux/process"
)

// ServerConfig says where a monitor keeps things.
type ServerConfig struct {
	StateDir string // holds containers/<id>/monitor.json of every container it started
	RunDir   string // holds the lock and short-lived files
}

// A Server is the monitor. It serves one listener until it is told to quit.
type Server struct {
	cfg    ServerConfig
	reaper *reaper
	quit   chan struct{}

	mu         sync.Mutex
	containers map[string]*container    // guarded by mu: those that have been started
	starting   map[string]chan struct{} // guarded by mu: those that are being started; closed when that is over
	watchers   map[*watcher]bool        // guarded by mu
}

// startTimeout bounds one call of the OCI runtime.
const startTimeout = 2 * time.Minute

// listenerFD is where the program finds its listening socket.
const listenerFD = 3

// Main is the whole program: "monitor serve STATE RUN" with the listening socket
// as descriptor 3, or "monitor pause" as first process of a shared PID namespace.
func Main(args []string) error {
	switch {
	case len(args) == 2 && args[1] == "pause":
		return pause()
	case len(args) == 4 && args[1] == "serve":
	default:
		return errors.New("usage: monitor serve STATE-DIR RUN-DIR (started by peri)")
	}
	// Little garbage and little to do: one processor and an early collector keep it small.
	runtime.GOMAXPROCS(2)
	debug.SetGCPercent(20)
	_ = process.SetOOMScoreAdj(-999) // only with CAP_SYS_RESOURCE
	cfg := ServerConfig{StateDir: args[2], RunDir: args[3]}
	lock, err := process.Lock(filepath.Join(cfg.RunDir, "monitor.lock"))
	if err != nil {
		return fmt.Errorf("another monitor is running: %w", err)
	}
	defer lock.Close()
	f := os.NewFile(listenerFD, "listener")
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("descriptor 3: %w", err)
	}
	// FileListener made a copy; the original stays for replace.
	defer f.Close()
	syscall.CloseOnExec(listenerFD)
	return Serve(l.(*net.UnixListener), cfg)
}

// Serve adopts the containers that an earlier monitor started and serves l.
func Serve(l *net.UnixListener, cfg ServerConfig) error {
	if err := process.SetSubreaper(); err != nil {
		return fmt.Errorf("become child subreaper: %w", err)
	}
	s := &Server{
		cfg: cfg, reaper: newReaper(), quit: make(chan struct{}),
		containers: map[string]*container{}, starting: map[string]chan struct{}{}, watchers: map[*watcher]bool{},
	}
	s.adopt()
	go s.reaper.run()
	go func() {
		<-s.quit
		l.Close()
	}()
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go s.serve(conn)
	}
}

func (s *Server) serve(conn *net.UnixConn) {
	defer conn.Close()
	var req Request
	files, err := receiveMessage(conn, &req)
	if err != nil {
		return
	}
	defer closeAll(files)
	switch {
	case req.Op == opHello:
		_ = reply(conn, Reply{Protocol: Protocol, PID: os.Getpid()})
	case req.Op == opStart && req.Start != nil:
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		c, err := s.start(ctx, *req.Start)
		if err != nil {
			_ = reply(conn, failure(err))
			return
		}
		_ = reply(conn, Reply{Container: c.state()})
	case req.Op == opExec && req.Exec != nil:
		s.serveExec(conn, *req.Exec, files)
	case req.Op == opAttach && req.Attach != nil:
		s.serveAttach(conn, *req.Attach)
	case req.Op == opOCI && req.OCI != nil:
		s.serveOCI(conn, *req.OCI)
	case req.Op == opWatch:
		s.serveWatch(conn)
	case req.Op == opQuit:
		s.serveQuit(conn)
	case req.Op == opReplace:
		_ = reply(conn, failureOrNothing(s.replace(req.Path)))
	default:
		s.serveContainer(conn, req)
	}
}

// serveContainer serves the short operations on one container.
func (s *Server) serveContainer(conn *net.UnixConn, req Request) {
	c := s.find(req.ID)
	if c == nil {
		_ = reply(conn, missing(req.ID))
		return
	}
	var err error
	switch req.Op {
	case opSignal:
		err = c.signal(s.reaper, syscall.Signal(req.Signal))
	case opReopen:
		if c.state().Exit == nil {
			err = c.log.reopen()
		}
	case opResize:
		if c.console == nil {
			err = errors.New("container has no terminal")
		} else {
			err = process.SetWinsize(c.console, req.Rows, req.Columns)
		}
	case opForget:
		if c.state().Exit == nil {
			err = errors.New("container is running")
		} else {
			s.forget(req.ID)
		}
	default:
		err = fmt.Errorf("unknown operation %q", req.Op)
	}
	_ = reply(conn, failureOrNothing(err))
}

// signal reaches the container's first process. One that has ended needs none.
func (c *container) signal(r *reaper, sig syscall.Signal) error {
	if c.state().Exit != nil {
		return nil
	}
	err := r.signal(c.Process.PID, sig)
	if errors.Is(err, syscall.ESRCH) && c.Process.Alive() {
		// Adopted from an earlier monitor: not our child.
		h, openErr := process.Open(c.Process.PID)
		if openErr != nil {
			return openErr
		}
		defer h.Close()
		err = h.Signal(sig)
	}
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func (s *Server) find(id string) *container {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.containers[id]
}

// reserve notes that a container is being started, which is done once at most.
func (s *Server) reserve(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers[id] != nil || s.starting[id] != nil {
		return false
	}
	s.starting[id] = make(chan struct{})
	return true
}

// launched ends what reserve began, with nil if the container could not be started.
// The watchers hear of it: who asked for the container may be gone.
func (s *Server) launched(id string, c *container) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil {
		s.containers[id] = c
		s.publishLocked(c)
	}
	close(s.starting[id])
	delete(s.starting, id)
}

func (s *Server) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.containers, id)
}

func (s *Server) serveQuit(conn *net.UnixConn) {
	s.mu.Lock()
	running := len(s.starting)
	for _, c := range s.containers {
		if c.state().Exit == nil {
			running++
		}
	}
	s.mu.Unlock()
	if running > 0 {
		_ = reply(conn, failure(fmt.Errorf("%d containers are running", running)))
		return
	}
	_ = reply(conn, Reply{})
	close(s.quit)
}

func reply(conn *net.UnixConn, r Reply) error { return sendMessage(conn, r) }

func failure(err error) Reply { return Reply{Error: err.Error()} }

func failureOrNothing(err error) Reply {
	if err != nil {
		return failure(err)
	}
	return Reply{}
}

func missing(id string) Reply {
	return Reply{Error: "no container " + id, Missing: true}
}
