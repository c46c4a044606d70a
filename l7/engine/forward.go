package engine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
	"github.com/periplus/periplus/l7/route"
	"github.com/periplus/periplus/l7/upstream"
)

// forward sends the request to a cluster: choose it, rewrite, try, respond.
func (f *flow) forward(a *l7.Forward) {
	x := &f.x
	name, host := a.Cluster, a.Host
	switch {
	case len(a.Weighted) > 0:
		w := pickWeighted(a.Weighted)
		if w == nil {
			f.reply(&l7.Reply{Status: 503, Flag: l7.FlagNoCluster, Details: "no_weight"})
			return
		}
		name = w.Name
		if w.Host != "" {
			host = w.Host
		}
		if !f.filter(w.Filters) {
			return
		}
		if w.Direct != nil {
			f.reply(w.Direct)
			return
		}
	case a.ClusterHeader != "":
		name = x.Request.Header.Get(a.ClusterHeader)
	}
	x.ClusterName = name
	cluster := f.now.clusters[name]
	if cluster == nil {
		f.reply(&l7.Reply{Status: 503, Flag: l7.FlagNoCluster, Details: "cluster_not_found"})
		return
	}
	x.Cluster = cluster.Config()
	if a.MaxBodyBytes > 0 {
		if x.Request.ContentLength > a.MaxBodyBytes {
			f.reply(&l7.Reply{Status: 413, Body: "Payload Too Large", Details: "request_payload_too_large"})
			return
		}
		f.body.limit = a.MaxBodyBytes
	}
	f.out = x.Request
	f.out.Path = route.Rewrite(a.Path, &x.Route.Match.Path, x.Request.Path)
	if host != "" {
		f.out.Authority = host
	}
	if f.out.Upgrade != "" && !f.upgradable(a, f.out.Upgrade) {
		f.out.Upgrade = "" // the endpoint answers as if nobody had asked
	}
	if !cluster.Begin() {
		f.reply(failed(&upstream.Failure{Kind: upstream.Overflow, Err: errOverflow}))
		return
	}
	defer cluster.End()
	f.mirror(a, false)
	f.tries(a, cluster)
	f.mirror(a, true)
	f.call.Reset()
}

var errOverflow = errors.New("circuit breaker is open")

func (f *flow) upgradable(a *l7.Forward, protocol string) bool {
	allowed := f.m.Upgrades
	if a.Upgrades != nil {
		allowed = a.Upgrades
	}
	return slices.Contains(allowed, protocol)
}

func pickWeighted(w []l7.WeightedCluster) *l7.WeightedCluster {
	var total uint64
	for i := range w {
		total += uint64(w[i].Weight)
	}
	if total == 0 {
		return nil
	}
	v := rand.Uint64N(total)
	for i := range w {
		if v < uint64(w[i].Weight) {
			return &w[i]
		}
		v -= uint64(w[i].Weight)
	}
	return nil
}

// tries sends the request until there is a response to pass on.
func (f *flow) tries(a *l7.Forward, cluster *upstream.Cluster) {
	x, c, policy := &f.x, &f.call, a.Retry
	c.Request, c.Response = &f.out, &x.Response
	c.Choice = f.choice(a)
	c.Destination = x.Connection.Destination
	c.Idle = f.idle()
	c.HTTP2 = x.Request.Proto == "HTTP/2" || x.Request.GRPC()
	c.HostOfEndpoint = a.HostOfEndpoint
	c.Context, c.Slow, c.Interrupt = f.down.context, f.down.watch, f.down.interrupt
	c.Avoid, c.Fresh = policy == nil || !policy.SameHost, false
	f.body.keep = f.out.Body == &f.body
	var total time.Time
	if a.Timeout > 0 {
		begin := x.Start
		if x.Flags&l7.FlagDelay != 0 {
			begin = time.Now() // an injected delay is not the endpoint's
		}
		total = begin.Add(a.Timeout)
	}
	retries, stale := 0, 0
	for {
		start := time.Now()
		c.Deadline = total
		if policy != nil && policy.PerTry > 0 {
			if per := start.Add(policy.PerTry); total.IsZero() || per.Before(total) {
				c.Deadline = per
			}
		}
		f.body.again()
		err := cluster.RoundTrip(c)
		x.Attempts++
		x.Endpoint, x.UpstreamPeer = c.Endpoint, c.Peer
		x.UpstreamTime = time.Since(start)
		var failure *upstream.Failure
		if err != nil && !errors.As(err, &failure) {
			failure = &upstream.Failure{Kind: upstream.Reset, Err: err}
		}
		can := !c.Sending() && f.body.replayable() && (total.IsZero() || time.Now().Before(total))
		if failure != nil && can && stale < 2 && f.untouched(failure) {
			// Nothing has happened yet: the connection was old.
			stale++
			c.Finish()
			c.Fresh = true
			continue
		}
		if !can || policy == nil || retries >= policy.Attempts || !wanted(policy, failure, &x.Response) || !cluster.BeginRetry() {
			f.finish(failure, policy, retries, total)
			return
		}
		c.Finish()
		ok := f.backOff(policy, retries)
		retries++
		cluster.EndRetry()
		if !ok {
			x.Flags |= l7.FlagDownstreamDisconnect
			f.down.abort()
			return
		}
	}
}

// untouched says that a try cannot have had an effect, so that another one is safe
// whatever the method is.
func (f *flow) untouched(e *upstream.Failure) bool {
	switch e.Kind {
	case upstream.Refused:
		return true
	case upstream.Stale:
		return f.call.Unsent || idempotent(f.out.Method)
	default:
		return false
	}
}

func idempotent(method string) bool {
	switch method {
	case "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}

// backOff waits between tries; false: the client has gone.
func (f *flow) backOff(p *l7.RetryPolicy, n int) bool {
	base := p.BackOff
	if base == 0 {
		base = 25 * time.Millisecond
	}
	most := p.MaxBackOff
	if most == 0 {
		most = 10 * base
	}
	wait := time.NewTimer(rand.N(min(base<<min(n, 16), most)) + 1)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-f.down.context().Done():
		return false
	}
}

// finish passes on the response, or says why there is none.
func (f *flow) finish(failure *upstream.Failure, p *l7.RetryPolicy, retries int, total time.Time) {
	x, c := &f.x, &f.call
	if p != nil && retries >= p.Attempts && p.Attempts > 0 && wanted(p, failure, &x.Response) {
		x.Flags |= l7.FlagRetryLimit
	}
	if failure != nil {
		c.Finish()
		f.failed(failure)
		return
	}
	c.SetDeadline(total)
	var err error
	if x.Response.Status == 101 && f.out.Upgrade != "" {
		for _, v := range slices.Backward(f.passed) {
			if r, ok := v.(l7.ResponseFilter); ok {
				r.Response(x)
			}
		}
		f.began = true
		err = f.down.upgrade(f, c)
	} else {
		err = f.respond()
	}
	if !c.Finish() {
		f.down.interrupt() // the rest of the request is not wanted any more
	}
	f.sent(err)
}

func (f *flow) failed(e *upstream.Failure) {
	if e.Kind == upstream.Client {
		if errors.Is(e.Err, errTooLarge) {
			f.reply(&l7.Reply{Status: 413, Body: "Payload Too Large", Details: "request_payload_too_large"})
			return
		}
		if f.down.context().Err() != nil {
			f.x.Flags |= l7.FlagDownstreamDisconnect
			setDetails(&f.x, "downstream_remote_disconnect")
			f.down.abort()
			return
		}
	}
	f.reply(failed(e))
}

// wanted says whether a policy wants another try.
func wanted(p *l7.RetryPolicy, e *upstream.Failure, r *l7.Response) bool {
	on := p.On
	if e != nil {
		switch e.Kind {
		case upstream.Connect:
			return on&(l7.RetryConnectFailure|l7.Retry5xx|l7.RetryGatewayError) != 0
		case upstream.Refused:
			return on&(l7.RetryRefusedStream|l7.Retry5xx) != 0
		case upstream.Stale, upstream.Reset, upstream.Protocol:
			return on&(l7.RetryReset|l7.Retry5xx|l7.RetryGatewayError) != 0
		case upstream.Timeout:
			return on&(l7.Retry5xx|l7.RetryGatewayError) != 0
		default:
			return false
		}
	}
	s := r.Status
	switch {
	case s >= 500 && on&l7.Retry5xx != 0,
		s >= 502 && s <= 504 && on&l7.RetryGatewayError != 0,
		s == 409 && on&l7.RetryRetriable4xx != 0,
		on&l7.RetryStatusCodes != 0 && slices.Contains(p.StatusCodes, s):
		return true
	}
	const grpc = l7.RetryCancelled | l7.RetryDeadlineExceeded | l7.RetryInternal | l7.RetryResourceExhausted | l7.RetryUnavailable
	if on&grpc == 0 {
		return false
	}
	code, _ := strconv.Atoi(r.Header.Get("grpc-status"))
	switch code {
	case 1:
		return on&l7.RetryCancelled != 0
	case 4:
		return on&l7.RetryDeadlineExceeded != 0
	case 8:
		return on&l7.RetryResourceExhausted != 0
	case 13:
		return on&l7.RetryInternal != 0
	case 14:
		return on&l7.RetryUnavailable != 0
	}
	return false
}

// choice computes the key of consistent hashing.
func (f *flow) choice(a *l7.Forward) balance.Choice {
	x := &f.x
	for i := range a.Hash {
		p := &a.Hash[i]
		key, ok := "", false
		switch {
		case p.Header != "":
			key, ok = x.Request.Header.Joined(p.Header)
		case p.Query != "":
			key, ok = route.QueryValue(x.Request.RawQuery(), p.Query)
		case p.SourceIP:
			key, ok = x.Client.String(), true
		case p.Cookie != "":
			if key, ok = x.Request.Header.Cookie(p.Cookie); !ok && p.CookieTTL >= 0 {
				key, ok = strconv.FormatUint(rand.Uint64(), 16), true
				f.cookie = cookie(p, key)
			}
		}
		if ok {
			return balance.Choice{Hash: balance.Hash(key), Hashed: true}
		}
	}
	return balance.Choice{}
}

func cookie(p *l7.HashPolicy, value string) string {
	s := p.Cookie + "=" + value
	if p.CookiePath != "" {
		s += "; Path=" + p.CookiePath
	}
	if p.CookieTTL > 0 {
		s += "; Max-Age=" + strconv.Itoa(int(p.CookieTTL.Seconds()))
	}
	return s + "; HttpOnly"
}
