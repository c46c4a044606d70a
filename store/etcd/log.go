package etcd

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"

	"go.uber.org/zap/zapcore"
)

// core passes etcd's zap entries of level warn and above to a slog logger, but
// for those that are no news to anybody: see usual, and the complaints of
// listeners that are being closed.
type core struct {
	log     *slog.Logger
	attrs   []any
	closing *atomic.Bool
}

// usual are warnings about what is meant to be so: the only clients are in this
// process or behind a socket of root's, a new store has no history, and a member
// announces itself again and again until it has applied its log.
var usual = map[string]bool{
	"Running http and grpc server on single port. This is not recommended for production.": true,
	"simple token is not cryptographically signed":                                         true,
	"Failed to detect schema version":                                                      true,
	"failed to update storage version":                                                     true,
	"failed to publish local member to cluster through raft":                               true,
}

var _ zapcore.Core = core{}

func (c core) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.log, append(slices.Clip(c.attrs), attrs(fields)...), c.closing}
}

func (c core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && !usual[e.Message] && !c.closing.Load() {
		return to.AddCore(e, c)
	}
	return to
}

func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, e.Message, append(slices.Clip(c.attrs), attrs(fields)...)...)
	return nil
}

func (c core) Sync() error { return nil }

func attrs(fields []zapcore.Field) []any {
	m := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(m)
	}
	out := make([]any, 0, 2*len(m.Fields))
	for k, v := range m.Fields {
		out = append(out, k, v)
	}
	return out
}
