package engine

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/balance"
	"github.com/periplus/periplus/l7/upstream"
)

// serveTCP connects a client with an endpoint.
func (c *conn) serveTCP() {
	t := c.chain.config.TCP
	c.info.Protocol = "tcp"
	for _, o := range t.Observers {
		o.Opened(&c.info)
	}
	c.proxyTCP(t)
	c.info.Duration = time.Since(c.info.Opened)
	for _, o := range t.Observers {
		o.Closed(&c.info)
	}
}

func (c *conn) proxyTCP(t *l7.TCPProxy) {
	now := c.engine.now.Load()
	name := t.Cluster
	if len(t.Weighted) > 0 {
		if w := pickWeighted(t.Weighted); w != nil {
			name = w.Name
		}
	}
	c.info.ClusterName = name
	cluster := now.clusters[name]
	if cluster == nil {
		c.info.Flags, c.info.Details = l7.FlagNoCluster, "cluster_not_found"
		return
	}
	c.info.Cluster = cluster.Config()
	choice := balance.Choice{Hash: balance.Hash(c.info.Remote.Addr().String()), Hashed: true}
	ctx, cancel := context.WithCancel(c.engine.ctx)
	defer cancel()
	stream, err := cluster.Dial(ctx, choice, c.info.Destination, t.ConnectAttempts)
	if err != nil {
		var f *upstream.Failure
		if errors.As(err, &f) {
			c.info.Flags, c.info.Details = flagOf(f.Kind), f.Kind.String()
		}
		c.engine.cfg.Log.Debug("TCP connection without an endpoint", "cluster", name, base.KeyError, err)
		// The client shall see a failure, not an orderly end.
		if tcp, ok := c.raw.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return
	}
	c.info.Endpoint, c.info.UpstreamPeer = stream.Endpoint, stream.Peer
	idle := t.IdleTimeout
	if idle == 0 {
		idle = time.Hour
	}
	client, first := c.stream, []byte(nil)
	if p, ok := client.(*peeked); ok {
		client, first = p.Conn, p.first
	}
	p := &pipe{client: client, clientFirst: first, server: stream.Conn, idle: idle}
	stop := context.AfterFunc(c.engine.ctx, func() { _ = stream.Conn.Close() })
	p.run()
	stop()
	_ = stream.Close()
	c.info.BytesReceived, c.info.BytesSent = p.received, p.sent
}
