package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/periplus/periplus/store/etcd"
)

// etcdFlag makes this program the one that writes to an embedded etcd.
const etcdFlag = "-etcd"

const (
	// valueSize is of what is put: as much as a small object.
	valueSize = 1 << 10
	// manyWriters are as many as it takes for etcd to write as fast as it can.
	manyWriters = 64
)

// etcdRates are puts a second of an embedded etcd by the number of writers, in a
// process of its own, with the settings that the server has.
type etcdRates map[int]float64

// etcdRates measures them once.
func (b *bench) etcdRates(ctx context.Context) (etcdRates, error) {
	if b.etcd != nil {
		return b.etcd, nil
	}
	out := etcdRates{}
	for _, writers := range []int{1, b.clients, manyWriters} {
		dir, err := os.MkdirTemp("", "bench-etcd-")
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, os.Args[0], etcdFlag, dir, strconv.Itoa(writers), strconv.Itoa(b.ops)) //nolint:gosec // this program
		cmd.Stderr = b.log
		text, err := cmd.Output()
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			return nil, fmt.Errorf("etcd alone: %w", err)
		}
		var rate struct {
			PerSecond float64
			CPU       time.Duration
		}
		if err := json.Unmarshal(text, &rate); err != nil {
			return nil, err
		}
		out[writers] = rate.PerSecond
		b.results.add(figure{
			Name: fmt.Sprintf("etcd alone, puts of 1 KB, %d writers", writers), Unit: "/s", Value: rate.PerSecond,
			Note: fmt.Sprintf("%d µs of CPU each; what no API server can be faster than", rate.CPU.Microseconds()),
		})
	}
	b.etcd = out
	return out, nil
}

// putMany is that program: its arguments are a directory, writers and puts.
func putMany(args []string) error {
	if len(args) != 3 {
		return errors.New("want a directory, a number of writers and of puts")
	}
	writers, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	puts, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := etcd.Start(ctx, etcd.Config{Dir: args[0]})
	if err != nil {
		return err
	}
	defer s.Close()
	value := make([]byte, valueSize)
	_, _ = rand.Read(value) // never fails
	before, err := measure([]int{os.Getpid()})
	if err != nil {
		return err
	}
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, writers)
	begin := time.Now()
	for range writers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= puts {
					return
				}
				if _, err := s.Create(ctx, fmt.Sprintf("/registry/configmaps/bench/cm-%06d", i), value); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(begin)
	select {
	case err := <-failed:
		return err
	default:
	}
	after, err := measure([]int{os.Getpid()})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"PerSecond": float64(puts) / took.Seconds(), "CPU": (after.CPU - before.CPU) / time.Duration(puts),
	})
}
