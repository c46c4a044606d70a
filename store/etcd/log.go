package etcd

import (
	"context"
	"log/slog"

	"go.uber.org/zap/zapcore"
)

// core passes etcd's zap entries of level warn and above to a slog logger.
type core struct {
	log   *slog.Logger
	attrs []any
}

var _ zapcore.Core = core{}

func (c core) Enabled(l zapcore.Level) bool { return l >= zapcore.WarnLevel }

func (c core) With(fields []zapcore.Field) zapcore.Core {
	return core{c.log, append(c.attrs[:len(c.attrs):len(c.attrs)], attrs(fields)...)}
}

func (c core) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return to.AddCore(e, c)
	}
	return to
}

func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	level := slog.LevelWarn
	if e.Level >= zapcore.ErrorLevel {
		level = slog.LevelError
	}
	c.log.Log(context.Background(), level, e.Message, append(c.attrs[:len(c.attrs):len(c.attrs)], attrs(fields)...)...)
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
