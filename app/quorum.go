package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/base/jointoken"
	"github.com/periplus/periplus/base/pki"
	"github.com/periplus/periplus/kubelet/bootstrap"
	"github.com/periplus/periplus/store/etcd"
)

const (
	// quorumPath is where a server that joins asks for its place. Who may, says the
	// cluster role system:periplus:server-join.
	quorumPath = "/periplus/v1/servers"
	// peerPort is etcd's between members.
	peerPort = 2380
	// promoteTimeout bounds how long a new member may take to catch up.
	promoteTimeout = 2 * time.Minute
	maxQuorumBody  = 1 << 20
)

// The authority of etcd's members has no other purpose: whoever has one of its
// certificates can write anything.
const (
	clusterAuthority = "ca"
	memberAuthority  = "etcd-ca"
	memberLeaf       = "etcd-peer"
	accountsKey      = "service-account.key"
)

// quorumRequest is what a server that joins sends: first who it is, then, when its
// etcd runs, its number.
type quorumRequest struct {
	Name    string `json:"name,omitempty"`
	Peer    string `json:"peer,omitempty"`
	Promote uint64 `json:"promote,omitempty"`
}

// quorumAnswer makes a server one of the cluster. It holds all secrets of it.
type quorumAnswer struct {
	Files   map[string][]byte `json:"files"` // of the pki directory
	Cluster json.RawMessage   `json:"cluster"`
	Member  uint64            `json:"member"`
	Members map[string]string `json:"members"`
}

// memberFile says that this machine's etcd is one of several.
func (c *Config) memberFile() string { return filepath.Join(c.StateDir, "etcd-member.json") }

// memberRecord is what a start needs to know; Members only until etcd's directory does.
type memberRecord struct {
	Member  uint64            `json:"member,omitempty"`
	Members map[string]string `json:"members,omitempty"`
	// Promoted says that the member has a vote.
	Promoted bool `json:"promoted"`
}

// clustered says whether this server is, or is to be, one of several.
func (c *Config) clustered() bool {
	if c.ClusterInit || c.Server != "" {
		return true
	}
	_, err := os.Stat(c.memberFile())
	return err == nil
}

func (c *Config) readMember() (memberRecord, bool) {
	var m memberRecord
	data, err := os.ReadFile(c.memberFile())
	return m, err == nil && json.Unmarshal(data, &m) == nil
}

func (c *Config) writeMember(m memberRecord) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return pki.WriteFile(c.memberFile(), data, 0o600)
}

func peerURL(ip netip.Addr) string {
	return "https://" + net.JoinHostPort(ip.String(), fmt.Sprint(peerPort))
}

// joinQuorum asks a server for a place beside it. It changes nothing on this machine.
func joinQuorum(ctx context.Context, c *Config, ip netip.Addr) (*quorumAnswer, error) {
	server, err := bootstrap.ParseServer(c.Server)
	if err != nil {
		return nil, err
	}
	token, err := c.joinToken()
	if err != nil {
		return nil, err
	}
	ca, err := bootstrap.Discover(ctx, server, token)
	if err != nil {
		return nil, err
	}
	var out quorumAnswer
	if err := askQuorum(ctx, server.String(), ca, token, quorumRequest{Name: c.NodeName, Peer: peerURL(ip)}, &out); err != nil {
		return nil, fmt.Errorf("join %s as a server: %w", server, err)
	}
	return &out, c.adopt(out.Cluster)
}

func askQuorum(ctx context.Context, server string, ca []byte, token jointoken.Token, q quorumRequest, into any) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	certs, err := jointoken.Certificates(ca)
	if err != nil {
		return err
	}
	pool := (&pki.Authority{Cert: certs[0]}).Pool()
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, server+quorumPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token.Bearer())
	request.Header.Set("Content-Type", "application/json")
	answer, err := (&http.Client{Transport: transport, Timeout: promoteTimeout}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxQuorumBody))
	if err != nil {
		return err
	}
	switch answer.StatusCode {
	case http.StatusOK:
		if into == nil {
			return nil
		}
		return json.Unmarshal(data, into)
	case http.StatusUnauthorized:
		return fmt.Errorf("token %s is not accepted: it is unknown there, has another secret or has expired. On a server, \"peri token create --server\" makes one", token.ID)
	case http.StatusForbidden:
		return fmt.Errorf("token %s is for agents, not for servers: a server gets all secrets of the cluster. On a server, \"peri token create --server\" makes one that allows it", token.ID)
	}
	var status struct{ Message string }
	if json.Unmarshal(data, &status) == nil && status.Message != "" {
		return errors.New(status.Message)
	}
	return fmt.Errorf("%s: %s", answer.Status, strings.TrimSpace(string(data)))
}

// saveQuorum writes what a join gave.
func (c *Config) saveQuorum(a *quorumAnswer) error {
	if err := os.MkdirAll(c.pkiDir(), 0o700); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	for name, data := range a.Files {
		if name != filepath.Base(name) {
			return fmt.Errorf("join: %q is not the name of a file", name)
		}
		if err := pki.WriteFile(filepath.Join(c.pkiDir(), name), data, 0o600); err != nil {
			return err
		}
	}
	return errors.Join(
		pki.WriteFile(filepath.Join(c.StateDir, "server-cluster.json"), a.Cluster, 0o644),
		c.writeMember(memberRecord{Member: a.Member, Members: a.Members}),
	)
}

// adoptSaved sets a server that has joined up as its cluster is.
func (c *Config) adoptSaved() error {
	data, err := os.ReadFile(filepath.Join(c.StateDir, "server-cluster.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.adopt(data)
}

// serveQuorum gives a place to a server that joins.
func (s *controlPlane) serveQuorum(w http.ResponseWriter, r *http.Request) {
	refuse := func(code int, err error) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": err.Error()})
	}
	member, ok := s.store.(*etcd.Store)
	if !ok || !s.config.clustered() || member.MemberID() == 0 {
		refuse(http.StatusConflict, errors.New("this server is the only one of its cluster and does not listen to others: restart it with --cluster-init first"))
		return
	}
	var q quorumRequest
	if err := json.NewDecoder(io.LimitReader(r.Body, maxQuorumBody)).Decode(&q); err != nil {
		refuse(http.StatusBadRequest, err)
		return
	}
	log := s.log.With(base.KeyComponent, "etcd")
	if q.Promote != 0 {
		ctx, cancel := context.WithTimeout(r.Context(), promoteTimeout)
		defer cancel()
		if err := member.Promote(ctx, q.Promote); err != nil {
			refuse(http.StatusInternalServerError, err)
			return
		}
		log.Info("a server has joined the quorum", "member", q.Promote)
		w.WriteHeader(http.StatusOK)
		return
	}
	answer, err := s.place(r.Context(), member, q)
	if err != nil {
		refuse(http.StatusConflict, err)
		return
	}
	log.Info("a server joins", base.KeyName, q.Name, base.KeyAddress, q.Peer)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (s *controlPlane) place(ctx context.Context, member *etcd.Store, q quorumRequest) (*quorumAnswer, error) {
	if q.Name == "" || !strings.HasPrefix(q.Peer, "https://") {
		return nil, errors.New("a server that joins says its name and its peer address")
	}
	out := &quorumAnswer{Files: map[string][]byte{}}
	for _, name := range []string{clusterAuthority + ".crt", clusterAuthority + ".key", memberAuthority + ".crt", memberAuthority + ".key", proxyAuthority + ".crt", proxyAuthority + ".key", accountsKey} {
		data, err := os.ReadFile(filepath.Join(s.config.pkiDir(), name))
		if err != nil {
			return nil, fmt.Errorf("secrets of the cluster: %w", err)
		}
		out.Files[name] = data
	}
	var err error
	if out.Cluster, err = json.Marshal(s.config.cluster()); err != nil {
		return nil, err
	}
	out.Member, out.Members, err = member.AddMember(ctx, q.Name, q.Peer)
	return out, err
}

// member is how this server's etcd is one of several; nil when it is alone.
func (s *controlPlane) member() (*etcd.Cluster, error) {
	c := s.config
	if !c.clustered() || len(c.EtcdEndpoints) > 0 {
		return nil, nil
	}
	ca, err := pki.OpenAuthority(c.pkiDir(), memberAuthority)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.pkiDir(), memberLeaf)
	s.id.member, err = pki.OpenLeaf(ca, path, pki.Request{
		CommonName: c.NodeName, IPs: []net.IP{s.nodeIP.AsSlice(), net.IPv4(127, 0, 0, 1)}, Server: true, Client: true,
	})
	if err != nil {
		return nil, err
	}
	out := &etcd.Cluster{
		Name: c.NodeName, Peer: peerURL(s.nodeIP),
		CA: filepath.Join(c.pkiDir(), memberAuthority+".crt"), Cert: path + ".crt", Key: path + ".key",
	}
	record, ok := c.readMember()
	if !ok {
		return out, c.writeMember(memberRecord{Promoted: true})
	}
	out.Members = record.Members
	return out, nil
}

// vote gets this member its vote, if it has none yet.
func (s *controlPlane) vote(ctx context.Context) error {
	record, ok := s.config.readMember()
	if !ok || record.Promoted {
		return nil
	}
	server, err := bootstrap.ParseServer(s.config.Server)
	if err != nil {
		return fmt.Errorf("this server has not finished joining: start it once more with --server and --token: %w", err)
	}
	token, err := s.config.joinToken()
	if err != nil {
		return err
	}
	if err := askQuorum(ctx, server.String(), s.id.ca.PEM, token, quorumRequest{Promote: record.Member}, nil); err != nil {
		return fmt.Errorf("get a vote in the quorum: %w", err)
	}
	record.Promoted = true
	return s.config.writeMember(record)
}

// joinFirst joins another server, when that is wanted and has not happened yet.
func joinFirst(ctx context.Context, c *Config) (*quorumAnswer, error) {
	if c.Server == "" {
		return nil, nil
	}
	if _, done := c.readMember(); done {
		return nil, nil
	}
	if c.ClusterInit {
		return nil, errors.New("cluster-init and server: a server is the first of a cluster or joins one: give one of them")
	}
	if c.Token == "" {
		return nil, errors.New("token: a server joins with a token that \"peri token create --server\" makes on another server")
	}
	if entries, err := os.ReadDir(c.etcdDir()); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("server: %s holds a cluster of its own: a server joins with an empty state (peri down --purge)", c.StateDir)
	}
	ip, err := nodeIP(c)
	if err != nil {
		return nil, err
	}
	return joinQuorum(ctx, c, ip)
}
