package engine

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/upstream"
)

// mirrorTimeout bounds a mirrored request whose route has no timeout.
const mirrorTimeout = time.Minute

// mirror sends copies whose responses nobody waits for: those without a body at once,
// those with one when all of it has been read, if it is small enough to be kept.
func (f *flow) mirror(a *l7.Forward, after bool) {
	if len(a.Mirrors) == 0 || after != (f.out.Body != nil) {
		return
	}
	if after && (!f.body.keep || !f.body.whole && f.body.read != f.out.ContentLength) {
		return
	}
	for i := range a.Mirrors {
		m := &a.Mirrors[i]
		cluster := f.now.clusters[m.Cluster]
		if cluster == nil || m.Fraction != 0 && rand.Uint32N(1_000_000) >= m.Fraction {
			continue
		}
		out := f.out
		out.Header, out.Trailer, out.Upgrade = f.out.Header.Clone(), nil, ""
		if after {
			kept := bytes.Clone(f.body.kept)
			out.Body, out.ContentLength = bytes.NewReader(kept), int64(len(kept))
		}
		timeout := a.Timeout
		if timeout == 0 {
			timeout = mirrorTimeout
		}
		e := f.engine
		e.all.Go(func() { e.copyTo(cluster, &out, timeout) })
	}
}

func (e *Engine) copyTo(cluster *upstream.Cluster, q *l7.Request, timeout time.Duration) {
	if !cluster.Begin() {
		return
	}
	defer cluster.End()
	var response l7.Response
	call := &upstream.Call{
		Request: q, Response: &response, Deadline: time.Now().Add(timeout),
		HTTP2: q.GRPC(), Context: func() context.Context { return e.ctx },
	}
	if cluster.RoundTrip(call) == nil && response.Body != nil {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	call.Finish()
}
