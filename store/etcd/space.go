package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
)

// space gives room back when the database has reached its quota: history is forgotten
// and the file is written anew without the holes that it leaves. Until then etcd, under
// an alarm of its own, refuses all writes but deletions.
type space struct {
	server *embed.Etcd
	quota  int64
	log    *slog.Logger

	mu   sync.Mutex // one reclaims, the others wait for what comes of it
	done int64      // guarded by mu; the revision up to which nothing more is to be had
	// rest is when it may be tried again, guarded by mu. While the database is full,
	// at most a part of the time goes into that.
	rest time.Time
}

// share is how many times longer than an attempt without success the pause after it is.
const share = 5

// errFull says that what is stored, without its history, is more than the quota.
var errFull = errors.New("the database is full: delete what is not needed")

// reclaim returns nil if there may be room again.
func (s *space) reclaim(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.alarmed() {
		return nil // somebody else has done it
	}
	revision := s.server.Server.KV().Rev()
	begin := time.Now()
	if revision <= s.done || begin.Before(s.rest) {
		return errFull
	}
	s.log.Warn("The database has reached its quota: old revisions are forgotten, the file is written anew.", "quota", s.quota)
	if _, err := s.server.Server.Compact(ctx, &etcdserverpb.CompactionRequest{Revision: revision, Physical: true}); err != nil {
		return fmt.Errorf("forget old revisions: %w", err)
	}
	s.done = revision
	backend := s.server.Server.Backend()
	// How much is free is not known before: etcd counts it one transaction later.
	if err := backend.Defrag(); err != nil {
		return fmt.Errorf("defragment the database: %w", err)
	}
	if backend.Size() > s.quota-s.quota/20 {
		s.rest = time.Now().Add(share * time.Since(begin))
		return errFull
	}
	member := uint64(s.server.Server.MemberID())
	_, err := s.server.Server.Alarm(ctx, &etcdserverpb.AlarmRequest{
		Action: etcdserverpb.AlarmRequest_DEACTIVATE, MemberID: member, Alarm: etcdserverpb.AlarmType_NOSPACE,
	})
	if err != nil {
		return fmt.Errorf("end the alarm: %w", err)
	}
	s.log.Info("The database has room again.", "bytes", backend.Size())
	return nil
}

// alarmed reports whether this member is out of space. Other members see to themselves.
func (s *space) alarmed() bool {
	if s.server.Server.Backend().Size() >= s.quota {
		return true
	}
	for _, a := range s.server.Server.Alarms() {
		if a.GetAlarm() == etcdserverpb.AlarmType_NOSPACE && a.GetMemberID() == uint64(s.server.Server.MemberID()) {
			return true
		}
	}
	return false
}
