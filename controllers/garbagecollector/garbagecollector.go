package garbagecollector

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/client/objects"
	"github.com/periplus/periplus/controllers"
)

// Controller declares the garbage collector. Its keys are UIDs. It reads and
// writes every kind.
func Controller() controllers.Controller {
	everything := []schema.GroupVersionResource{{Group: "*", Version: "*", Resource: "*"}}
	return controllers.Controller{Name: "garbage-collector-controller", Reads: everything, Writes: everything, Workers: 20, New: build}
}

type collector struct {
	*controllers.Setup
	graph *graph
}

var (
	_ controllers.Runner = (*collector)(nil)
	_ objects.Sink       = (*collector)(nil)
)

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	if s.Metadata == nil || s.Objects == nil {
		return nil, fmt.Errorf("no metadata client: %w", controllers.ErrNotConfigured)
	}
	return &collector{Setup: s, graph: newGraph()}, nil
}

// Run feeds the graph until ctx ends.
func (c *collector) Run(ctx context.Context) error { return c.Objects.Follow(ctx, c) }

// Upsert takes an object's state.
func (c *collector) Upsert(r objects.Resource, o metav1.Object) { c.enqueue(c.graph.upsert(r, o)) }

// Gone takes an object out.
func (c *collector) Gone(_ objects.Resource, o metav1.Object) {
	c.enqueue(c.graph.gone(o.GetUID()))
}

// Resources takes the table of kinds. Owners of kinds that were unknown may now
// be looked up.
func (c *collector) Resources(list []objects.Resource) {
	c.graph.setResources(list)
	c.graph.mu.Lock()
	synced := c.graph.synced
	c.graph.mu.Unlock()
	if synced {
		c.enqueue(c.graph.start())
	}
}

// Synced begins the collection.
func (c *collector) Synced() { c.enqueue(c.graph.start()) }

func (c *collector) enqueue(uids []types.UID) {
	for _, uid := range uids {
		c.Queue.Add(controllers.Key{Name: string(uid)})
	}
}

// Reconcile looks at one node and does what it needs.
func (c *collector) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	v, ok := c.graph.view(types.UID(key.Name))
	switch {
	case !ok, v.virtual:
		return 0, nil
	case v.orphan:
		return 0, c.orphan(ctx, v)
	case v.foreground:
		return 0, c.foreground(ctx, v)
	case v.deleting, len(v.owners) == 0:
		return 0, nil
	}
	return 0, c.judge(ctx, v)
}
