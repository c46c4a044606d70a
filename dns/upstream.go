package dns

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// systemdResolvers is where systemd-resolved lists the resolvers behind its stub.
const systemdResolvers = "/run/systemd/resolve/resolv.conf"

// statEvery is how often, at most, a question that goes upstream looks whether
// resolv.conf has changed.
const statEvery = time.Second

// A server is one upstream resolver and what is known of it.
type server struct {
	addr netip.AddrPort
	// suspect is until when (Unix nanoseconds) others are asked first.
	suspect atomic.Int64
	down    atomic.Bool // as logged
}

// upstreams are the resolvers of a resolv.conf. The file is looked at when
// somebody asks, not by a timer.
type upstreams struct {
	path, stub string
	self       netip.Addr

	mu      sync.Mutex // guards what follows
	servers []*server
	checked time.Time
	state   [2]fileState
}

// fileState tells versions of a file apart.
type fileState struct {
	modified time.Time
	size     int64
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{info.ModTime(), info.Size()}
}

func newUpstreams(path, stub string, self netip.Addr) *upstreams {
	return &upstreams{path: path, stub: stub, self: self}
}

// current returns the resolvers. The error is that of reading the file; then
// there are those of the last time.
func (u *upstreams) current(now time.Time) ([]*server, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.checked.IsZero() && now.Sub(u.checked) < statEvery {
		return u.servers, nil
	}
	first := u.checked.IsZero()
	u.checked = now
	state := [2]fileState{stateOf(u.path), stateOf(u.stub)}
	if !first && state == u.state {
		return u.servers, nil
	}
	list, err := resolvers(u.path, u.stub, u.self)
	if err != nil {
		return u.servers, err
	}
	u.state = state
	u.servers = sameServers(u.servers, list)
	return u.servers, nil
}

// sameServers keeps what is known of those that stay.
func sameServers(old []*server, addrs []netip.AddrPort) []*server {
	out := make([]*server, 0, len(addrs))
	for _, a := range addrs {
		i := slices.IndexFunc(old, func(s *server) bool { return s.addr == a })
		if i >= 0 {
			out = append(out, old[i])
		} else {
			out = append(out, &server{addr: a})
		}
	}
	return out
}

// resolvers reads the resolvers in a file, without ourselves. If systemd-resolved's
// stub is the only one, those that it asks come in its place: the stub may be
// configured to ask us.
func resolvers(path, stub string, self netip.Addr) ([]netip.AddrPort, error) {
	list, err := readResolvConf(path, self)
	if err != nil || !slices.ContainsFunc(list, isStub) || slices.ContainsFunc(list, func(a netip.AddrPort) bool { return !isStub(a) }) {
		return list, err
	}
	behind, err := readResolvConf(stub, self)
	if err != nil {
		return nil, err
	}
	behind = slices.DeleteFunc(behind, isStub)
	if len(behind) == 0 {
		return list, nil
	}
	return behind, nil
}

// isStub says whether an address is one of systemd-resolved's own.
func isStub(a netip.AddrPort) bool {
	return a.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 53}) || a.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 54})
}

// readResolvConf returns the name servers of a file (resolv.conf(5)), none if
// there is no file.
func readResolvConf(path string, self netip.Addr) ([]netip.AddrPort, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseResolvConf(f, self)
}

func parseResolvConf(r io.Reader, self netip.Addr) ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	lines := bufio.NewScanner(io.LimitReader(r, 1<<20))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		a, err := netip.ParseAddr(fields[1])
		if err != nil {
			continue // as other readers of the file do
		}
		server := netip.AddrPortFrom(a.Unmap(), 53)
		if server.Addr() != self && !slices.Contains(out, server) {
			out = append(out, server)
		}
	}
	return out, lines.Err()
}
