package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
)

// ErrNotClustered is returned when members are asked of a store that is not an
// embedded member.
var ErrNotClustered = errors.New("this server's etcd is not an embedded member")

// A Cluster makes an embedded member one of several: a Raft quorum.
type Cluster struct {
	// Name is the member's, unlike the others'.
	Name string
	// Peer is where other members reach this one: https://192.0.2.1:2380.
	Peer string
	// Members are the peers of all members by name when this one joins others
	// (its own included); nil when it is the first. It matters only for an
	// empty directory: afterwards the directory knows.
	Members map[string]string
	// CA, Cert and Key are files: peers authenticate each other by certificates
	// of an authority that has no other purpose.
	CA, Cert, Key string
}

// apply sets up a configuration for several members.
func (c *Cluster) apply(e *embed.Config) error {
	peer, err := url.Parse(c.Peer)
	if err != nil || peer.Scheme != "https" {
		return fmt.Errorf("etcd: peer address %q is not an https URL", c.Peer)
	}
	e.Name = c.Name
	e.TickMs, e.ElectionMs = 100, 1000
	e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	e.PeerTLSInfo = transport.TLSInfo{TrustedCAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key, ClientCertAuth: true}
	e.InitialCluster = c.Name + "=" + c.Peer
	if len(c.Members) > 0 {
		var list []string
		for name, peer := range c.Members {
			list = append(list, name+"="+peer)
		}
		slices.Sort(list)
		e.InitialCluster, e.ClusterState = strings.Join(list, ","), embed.ClusterStateFlagExisting
	}
	return nil
}

// AddMember lets a server join as a member that only learns until Promote. It
// returns the member's number and the peers of all members by name.
func (s *Store) AddMember(ctx context.Context, name, peer string) (uint64, map[string]string, error) {
	if s.member == 0 {
		return 0, nil, ErrNotClustered
	}
	list, err := s.client.MemberList(ctx)
	if err != nil {
		return 0, nil, fmt.Errorf("members of etcd: %w", err)
	}
	for _, m := range list.Members {
		switch {
		case slices.Contains(m.PeerURLs, peer) && m.Name == "":
			// An earlier try of the same server, which never started.
			if _, err := s.client.MemberRemove(ctx, m.ID); err != nil {
				return 0, nil, fmt.Errorf("remove member %x: %w", m.ID, err)
			}
		case m.Name == name || slices.Contains(m.PeerURLs, peer):
			return 0, nil, fmt.Errorf("etcd has a member %s at %s already: remove it first when that server is gone for good", m.Name, strings.Join(m.PeerURLs, ","))
		}
	}
	added, err := s.addLearner(ctx, peer)
	if err != nil {
		return 0, nil, fmt.Errorf("add member %s at %s: %w", name, peer, err)
	}
	members := map[string]string{}
	for _, m := range added.Members {
		n := m.Name
		if m.ID == added.Member.ID {
			n = name
		}
		if len(m.PeerURLs) > 0 && n != "" {
			members[n] = m.PeerURLs[0]
		}
	}
	return added.Member.ID, members, nil
}

// settleWithin is how long the others may take to be in touch with each other before a
// member is added: etcd wants to have heard of all of them for five seconds.
const settleWithin = 30 * time.Second

// addLearner adds a member. Of two servers that join at the same time one waits for
// the other.
func (s *Store) addLearner(ctx context.Context, peer string) (*clientv3.MemberAddResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for {
		added, err := s.client.MemberAddAsLearner(ctx, []string{peer})
		if !means(err, rpctypes.ErrUnhealthy) && !means(err, rpctypes.ErrTooManyLearners) {
			return added, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// means reports whether err is one of etcd's, which the embedded client returns as they
// are and another one in gRPC's words.
func means(err, one error) bool {
	return err != nil && (errors.Is(err, one) || strings.Contains(err.Error(), one.Error()))
}

// Promote gives a member a vote once it has caught up, which is awaited.
func (s *Store) Promote(ctx context.Context, id uint64) error {
	if s.member == 0 {
		return ErrNotClustered
	}
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		_, err := s.client.MemberPromote(ctx, id)
		switch {
		case err == nil || errors.Is(err, rpctypes.ErrMemberNotLearner):
			return nil
		case !means(err, rpctypes.ErrMemberLearnerNotReady):
			return fmt.Errorf("promote member %x: %w", id, err)
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("member %x does not catch up: %w", id, ctx.Err())
		}
	}
}

// MemberID is this member's number; 0 for an external etcd.
func (s *Store) MemberID() uint64 { return s.member }

// settlePeer corrects where others reach this member, when that has changed: a
// single member becomes one of several.
func (s *Store) settlePeer(ctx context.Context, peer string) error {
	list, err := s.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("members of etcd: %w", err)
	}
	i := slices.IndexFunc(list.Members, func(m *etcdserverpb.Member) bool { return m.ID == s.member })
	if i < 0 || slices.Equal(list.Members[i].PeerURLs, []string{peer}) {
		return nil
	}
	if _, err := s.client.MemberUpdate(ctx, s.member, []string{peer}); err != nil {
		return fmt.Errorf("peer address of this member: %w", err)
	}
	return nil
}
