package hollow

import (
	"log/slog"
	"sync"

	"github.com/periplus/periplus/base"
)

// A trouble tells once that something does not work, and once that it works again,
// for however many nodes.
type trouble struct {
	mu   sync.Mutex // guards told
	told bool
}

func (t *trouble) note(log *slog.Logger, what string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil && !t.told:
		log.Warn(what, base.KeyError, err)
	case err == nil && t.told:
		log.Info("works again", "what", what)
	}
	t.told = err != nil
}
