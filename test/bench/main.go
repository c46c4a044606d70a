package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A part is one measurement.
type part struct {
	name string
	run  func(context.Context, *bench) error
}

// parts in their order; all but the first and the last share one cluster.
var parts = []part{
	{"start", measureStarts},
	{"idle", measureIdle},
	{"run", measureRuns},
	{"runtime", measureRuntime},
	{"scale", measureScale},
	{"api", measureAPI},
	{"load", measureLoaded},
	{"hollow", measureHollow},
	{"verbs", measureVerbs},
	{"watchers", measureWatchers},
	{"large", measureLarge},
}

// A bench is the configuration and what has been measured so far.
type bench struct {
	peri    string
	starts  int           // cold starts
	settle  time.Duration // after a start or a load, before idle is measured
	idle    time.Duration // how long idle is measured
	runs    int           // pods that are run one after another
	scale   int32         // replicas
	objects int           // ConfigMaps
	clients int           // each with a connection of its own
	watches int           // watchers, each with a connection of its own
	updates int           // seen by each watcher
	nodes   int           // that exist only in the API
	pods    int32         // on them

	ops      int // of each verb
	watchers int // of a thousand updates
	many     int // pods, and as many ConfigMaps, in a large cluster

	profiles string // where profiles of the server go; "": none are taken

	etcd etcdRates // measured by the first part that needs them

	cluster *cluster // shared by parts, started by the first that needs it
	results table
	log     io.Writer // progress
}

func main() {
	if slices.Equal(os.Args[1:], []string{tickFlag}) {
		tickForever()
	}
	if len(os.Args) > 1 && os.Args[1] == etcdFlag {
		if err := putMany(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	b := &bench{log: os.Stderr}
	var only, out string
	var limit time.Duration
	flag.StringVar(&b.peri, "peri", "bin/peri", "the binary to measure")
	flag.StringVar(&only, "parts", "", "comma-separated parts to measure; default all")
	flag.StringVar(&out, "o", "", "also write the figures to this file, as JSON")
	flag.DurationVar(&limit, "timeout", 10*time.Minute, "give up after this long")
	flag.IntVar(&b.starts, "starts", 5, "cold starts to measure")
	flag.DurationVar(&b.settle, "settle", 15*time.Second, "time before idle is measured")
	flag.DurationVar(&b.idle, "idle", time.Minute, "time over which idle is measured")
	flag.IntVar(&b.runs, "runs", 20, "workloads to run one after another")
	flag.IntVar(&b.objects, "objects", 5000, "ConfigMaps to create")
	flag.IntVar(&b.clients, "clients", 16, "concurrent API clients")
	flag.IntVar(&b.watches, "watches", 200, "concurrent watches")
	flag.IntVar(&b.updates, "updates", 1000, "updates made while watching")
	flag.IntVar(&b.nodes, "hollow-nodes", 1000, "nodes that exist only in the API")
	flag.IntVar(&b.ops, "ops", 4000, "requests of each verb")
	flag.IntVar(&b.watchers, "watchers", 1000, "concurrent watches, of a thousand updates")
	flag.IntVar(&b.many, "many", 50_000, "pods, and as many ConfigMaps, in a large cluster")
	flag.StringVar(&b.profiles, "profiles", "", "also write profiles of the server under each load into this directory")
	pods := flag.Int("hollow-pods", 10_000, "pods on them")
	replicas := flag.Int("scale", 50, "replicas to scale to")
	flag.Parse()
	b.scale = int32(*replicas) //nolint:gosec // a small number
	b.pods = int32(*pods)      //nolint:gosec // a small number
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := b.main(ctx, only, out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) main(ctx context.Context, only, out string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if b.peri, err = filepath.Abs(b.peri); err != nil {
		return err
	}
	if _, err := os.Stat(b.peri); err != nil {
		return fmt.Errorf("%w: build it first with make build", err)
	}
	if os.Geteuid() != 0 {
		return errors.New("needs root: runs containers")
	}
	var errs []error
	for _, p := range chosen {
		fmt.Fprintf(b.log, "bench: %s …\n", p.name)
		if err := p.run(ctx, b); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.close())
	}
	b.results.print(os.Stdout)
	if out != "" {
		errs = append(errs, b.results.save(out))
	}
	return errors.Join(errs...)
}

// choose returns the parts with the given names, in their own order.
func choose(names string) ([]part, error) {
	if names == "" {
		return parts, nil
	}
	wanted := strings.Split(names, ",")
	var chosen []part
	var known []string
	for _, p := range parts {
		known = append(known, p.name)
		if slices.Contains(wanted, p.name) {
			chosen = append(chosen, p)
		}
	}
	for _, w := range wanted {
		if !slices.Contains(known, w) {
			return nil, fmt.Errorf("-parts: %q is not allowed: must be among %s", w, strings.Join(known, ","))
		}
	}
	return chosen, nil
}
