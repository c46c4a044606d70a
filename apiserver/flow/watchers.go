package flow

import (
	"strings"
	"sync"

	"github.com/periplus/periplus/apiserver/request"
)

// watchers counts who watches what, as upstream tells them apart: by resource, namespace
// and name.
type watchers struct {
	mu     sync.Mutex // guards what follows
	counts map[watched]int
}

type watched struct{ group, resource, namespace, name string }

// begin counts a watch until the function that it returns is called. Who watches the pods
// of one node hears little.
func (w *watchers) begin(i *request.Info) (end func()) {
	if i.Group == "" && i.Resource == "pods" && strings.Contains(i.FieldSelector, "spec.nodeName=") {
		return func() {}
	}
	key := watched{strings.Clone(i.Group), strings.Clone(i.Resource), strings.Clone(i.Namespace), strings.Clone(i.Name)}
	w.add(key, 1)
	return func() { w.add(key, -1) }
}

func (w *watchers) add(key watched, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts == nil {
		w.counts = map[watched]int{}
	}
	if w.counts[key] += n; w.counts[key] == 0 {
		delete(w.counts, key)
	}
}

// interested is how many watches may hear of a write.
func (w *watchers) interested(i *request.Info) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.counts) == 0 {
		return 0
	}
	key := watched{group: i.Group, resource: i.Resource}
	n := w.counts[key]
	if i.Namespace != "" {
		key.namespace = i.Namespace
		n += w.counts[key]
	}
	if i.Name != "" {
		key.name = i.Name
		n += w.counts[key]
	}
	return n
}

// Watching counts a watch until the function that it returns is called: writes of what
// many watch take more seats.
func (c *Control) Watching(i *request.Info) (end func()) { return c.watchers.begin(i) }
