package monitor

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// A reaper collects every child, its own ones and those that it inherits as
// subreaper, and hands the wait status to whoever asked for the pid.
//
// An orphan may end before anybody knows its pid: the OCI runtime writes the
// pid to a file and exits, and only then do we read it. Statuses that nobody
// asked for are therefore kept while a runtime is at work (begin … end).
type reaper struct {
	mu       sync.Mutex
	wanted   map[int]chan syscall.WaitStatus // by pid; buffered
	orphans  map[int]syscall.WaitStatus      // kept while working > 0
	working  int
	children chan os.Signal
}

func newReaper() *reaper {
	r := &reaper{
		wanted:   map[int]chan syscall.WaitStatus{},
		orphans:  map[int]syscall.WaitStatus{},
		children: make(chan os.Signal, 1),
	}
	signal.Notify(r.children, syscall.SIGCHLD)
	return r
}

// run collects until the channel is closed.
func (r *reaper) run() {
	r.collect()
	for range r.children {
		r.collect()
	}
}

func (r *reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if ch, ok := r.wanted[pid]; ok {
			delete(r.wanted, pid)
			ch <- status
		} else if r.working > 0 {
			r.orphans[pid] = status
		}
	}
}

// spawn starts a child while nothing is being collected, so that its end cannot
// be missed.
func (r *reaper) spawn(fork func() (int, error)) (pid int, ended <-chan syscall.WaitStatus, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if pid, err = fork(); err != nil {
		return 0, nil, err
	}
	return pid, r.wantLocked(pid), nil
}

func (r *reaper) wantLocked(pid int) <-chan syscall.WaitStatus {
	ch := make(chan syscall.WaitStatus, 1)
	if status, ok := r.orphans[pid]; ok {
		delete(r.orphans, pid)
		ch <- status
	} else {
		r.wanted[pid] = ch
	}
	return ch
}

// adopt asks for the status of a child that another process forked.
func (r *reaper) adopt(pid int) <-chan syscall.WaitStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wantLocked(pid)
}

// signal reaches pid only if it is a child that has not been collected: its
// number cannot belong to anybody else.
func (r *reaper) signal(pid int, sig syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.wanted[pid]; !ok {
		return syscall.ESRCH
	}
	return syscall.Kill(pid, sig)
}

func (r *reaper) begin() {
	r.mu.Lock()
	r.working++
	r.mu.Unlock()
}

func (r *reaper) end() {
	r.mu.Lock()
	if r.working--; r.working == 0 {
		clear(r.orphans)
	}
	r.mu.Unlock()
}
