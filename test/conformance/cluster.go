package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/periplus/periplus/lab"
	"github.com/periplus/periplus/test/images/registry"
	"github.com/periplus/periplus/test/netlab"
)

// A cluster is a server and agents, each in a machine of its own.
type cluster struct {
	segment  *lab.Segment
	server   *netlab.Machine
	machines []*netlab.Machine
	images   *registry.Registry // for pods that always pull
	running  []*netlab.Peri
	logs     string
}

// start brings up the cluster; what it began is gone when it fails.
func start(ctx context.Context, peri, logs string, images []stocked, agents int) (c *cluster, err error) {
	c = &cluster{logs: logs}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	if c.segment, err = netlab.NewSegment(); err != nil {
		return nil, err
	}
	for i := range agents + 1 {
		m, err := netlab.New(netlab.Config{Peri: peri, Name: fmt.Sprintf("node-%d", i), Address: fmt.Sprintf("198.51.100.%d", 10+i), Segment: c.segment})
		if err != nil {
			return nil, err
		}
		c.machines = append(c.machines, m)
		if err := stock(filepath.Join(m.StateDir(), "images"), images); err != nil {
			return nil, err
		}
	}
	c.server = c.machines[0]
	mirrors, err := c.serve(ctx, images)
	if err != nil {
		return nil, err
	}
	p, err := c.server.Server(ctx, mirrors)
	if err != nil {
		return nil, err
	}
	c.running = append(c.running, p)
	token, err := c.server.Output(ctx, peri, "token", "create", "--kubeconfig", c.server.Kubeconfig())
	if err != nil {
		return nil, err
	}
	for _, m := range c.machines[1:] {
		p, err := m.Agent(ctx, "--server", "https://"+c.server.Address().String()+":6443", "--token", strings.TrimSpace(token), mirrors)
		if err != nil {
			return nil, err
		}
		c.running = append(c.running, p)
	}
	return c, nil
}

// serve starts a registry that has the images, and returns the flag that makes a node
// ask it instead of the one that they are named after.
func (c *cluster) serve(ctx context.Context, images []stocked) (flag string, err error) {
	l, err := c.server.Listen(ctx, "tcp4", c.server.Address().String()+":5000")
	if err != nil {
		return "", err
	}
	c.images = registry.Serve(l)
	for _, i := range images {
		if _, err := c.images.Push(ctx, i.ref.RepositoryStr()+":"+i.ref.TagStr(), i.image); err != nil {
			return "", err
		}
	}
	return "--registry-mirror=registry.k8s.io=http://" + l.Addr().String(), nil
}

// stock links the archives into a directory that a node reads images from.
func stock(dir string, images []stocked) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, i := range images {
		if err := link(i.archive, filepath.Join(dir, filepath.Base(i.archive))); err != nil {
			return err
		}
	}
	return nil
}

// link makes a hard link, or a copy where the file systems differ.
func link(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// close ends the machines, after their logs were saved.
func (c *cluster) close() error {
	var errs []error
	for i, p := range c.running {
		errs = append(errs, link(p.Log(), filepath.Join(c.logs, fmt.Sprintf("node-%d.log", i))))
	}
	for _, m := range c.machines {
		errs = append(errs, m.Close())
	}
	if c.images != nil {
		errs = append(errs, c.images.Close())
	}
	if c.segment != nil {
		errs = append(errs, c.segment.Close())
	}
	return errors.Join(errs...)
}
