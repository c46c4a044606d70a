package metrics

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/periplus/periplus/apiserver/subresource"
	"github.com/periplus/periplus/base"
)

const (
	// shortestWindow is what the first who asks waits for.
	shortestWindow = time.Second
	// resolution is for how long readings are good enough for another answer.
	resolution = 10 * time.Second
	// oldest is the age at which a reading says nothing about the present any more.
	oldest = 2 * time.Minute
	// patience is how long a kubelet may take to answer.
	patience = 10 * time.Second
	// atOnce bounds how many kubelets are asked at a time.
	atOnce = 64
)

// A collector asks kubelets, and remembers the last two readings of each node for
// as long as they are of use.
type collector struct {
	config Config
	client *http.Client
	slots  chan struct{} // one is held during each request

	mu     sync.Mutex
	nodes  map[string]*history // guarded by mu
	forget *time.Timer         // guarded by mu
}

// A history is the last two readings of a node. Whoever has put something into turn
// may use the rest.
type history struct {
	turn         chan struct{}
	before, last *reading
	read         time.Time // when last was read, by this machine's clock
}

func newCollector(c Config) *collector {
	transport := c.Transport
	if transport == nil {
		transport = &http.Transport{TLSClientConfig: c.KubeletTLS, IdleConnTimeout: 30 * time.Second, DisableCompression: true}
	}
	return &collector{
		config: c, client: &http.Client{Transport: transport, Timeout: patience},
		slots: make(chan struct{}, atOnce), nodes: map[string]*history{},
	}
}

// A pair is two readings of a node.
type pair struct{ before, last *reading }

// collect returns readings of those of the nodes that answer, by name. Readings of
// up to an age are good enough.
func (c *collector) collect(ctx context.Context, nodes []*corev1.Node, age time.Duration) map[string]pair {
	var mu sync.Mutex
	out := make(map[string]pair, len(nodes))
	var group sync.WaitGroup
	for _, n := range nodes {
		if silent(n) {
			continue
		}
		group.Go(func() {
			p, err := c.readings(ctx, n, age)
			if err != nil {
				if ctx.Err() == nil {
					c.config.Log.Debug("no metrics of a node", base.KeyNode, n.Name, base.KeyError, err)
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[n.Name] = p
		})
	}
	group.Wait()
	c.forgetLater()
	return out
}

// silent reports that a node's kubelet has not been heard of for a while.
func silent(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return true // it has never been
}

// readings returns two readings of a node, of which the later has at most an age.
func (c *collector) readings(ctx context.Context, n *corev1.Node, most time.Duration) (pair, error) {
	h := c.history(n.Name)
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return pair{}, ctx.Err()
	}
	defer func() { <-h.turn }()

	age := time.Since(h.read)
	if h.last != nil && h.before != nil && age < most {
		return pair{h.before, h.last}, nil
	}
	if h.last == nil || age > oldest {
		h.before, h.last = nil, nil
		if err := c.next(ctx, h, n); err != nil {
			return pair{}, err
		}
		if !pause(ctx) {
			return pair{}, ctx.Err()
		}
	}
	if err := c.next(ctx, h, n); err != nil {
		h.before, h.last = nil, nil
		return pair{}, err
	}
	if h.before == nil { // the kubelet answers with what it has said before
		return pair{h.last, h.last}, nil
	}
	return pair{h.before, h.last}, nil
}

// pause waits until a window is long enough; false means that ctx has ended.
func pause(ctx context.Context) bool {
	t := time.NewTimer(shortestWindow)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// next takes another reading.
func (c *collector) next(ctx context.Context, h *history, n *corev1.Node) error {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	r, err := c.ask(ctx, n)
	if err != nil {
		return err
	}
	if h.last == nil || r.node.at.After(h.last.node.at) {
		h.before, h.last = h.last, r
	}
	h.read = time.Now()
	return nil
}

func (c *collector) ask(ctx context.Context, n *corev1.Node) (*reading, error) {
	address, err := subresource.KubeletAddress(n)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics/resource", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	return parse(resp.Body, time.Now())
}

func (c *collector) history(node string) *history {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.nodes[node]
	if h == nil {
		h = &history{turn: make(chan struct{}, 1)}
		c.nodes[node] = h
	}
	return h
}

// forgetLater drops the readings when nobody has asked for so long that they are of
// no use any more.
func (c *collector) forgetLater() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forget != nil {
		c.forget.Reset(oldest)
		return
	}
	c.forget = time.AfterFunc(oldest, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.nodes, c.forget = map[string]*history{}, nil
	})
}
