package app

import (
	"context"
	"log/slog"
)

// floor is a handler that drops what is below a level.
type floor struct {
	slog.Handler
	level slog.Level
}

func (f *floor) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= f.level && f.Handler.Enabled(ctx, l)
}

func (f *floor) WithAttrs(a []slog.Attr) slog.Handler { return &floor{f.Handler.WithAttrs(a), f.level} }
func (f *floor) WithGroup(g string) slog.Handler      { return &floor{f.Handler.WithGroup(g), f.level} }
