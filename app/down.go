package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/periplus/periplus/cni/bridge"
	"github.com/periplus/periplus/containers"
	"github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/containers/snapshot/overlayfs"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/process"
	"github.com/periplus/periplus/proxy/nftables"
)

// DownOptions say how much ends.
type DownOptions struct {
	KeepContainers bool
	Purge          bool // delete the state directory
	Out            io.Writer
}

// Down ends the peri of a state directory and what it has left running. It
// works too when that peri has been killed.
func Down(ctx context.Context, c *Config, o DownOptions) error {
	if os.Geteuid() != 0 {
		return errors.New("peri down needs root: run it with sudo")
	}
	if _, err := os.Stat(filepath.Join(c.StateDir, markerName)); err != nil {
		return fmt.Errorf("%s is not a state directory of Periplus: nothing to stop", c.StateDir)
	}
	stopped, err := stopProcess(ctx, c)
	if err != nil {
		return err
	}
	if stopped {
		fmt.Fprintln(o.Out, "peri has stopped.")
	}
	release, err := openState(c.StateDir)
	if err != nil {
		return err
	}
	defer release()
	if o.KeepContainers {
		return nil
	}
	if err := cleanNode(ctx, c); err != nil {
		return err
	}
	fmt.Fprintln(o.Out, "Containers, networks and rules are gone.")
	if !o.Purge {
		return nil
	}
	if err := os.RemoveAll(c.StateDir); err != nil {
		return fmt.Errorf("delete the state: %w", err)
	}
	fmt.Fprintf(o.Out, "The state in %s is deleted.\n", c.StateDir)
	return nil
}

// stopProcess ends the running peri, if there is one, and waits for its end.
func stopProcess(ctx context.Context, c *Config) (bool, error) {
	data, err := os.ReadFile(c.PidFile())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("process ID: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || pid < 2 {
		return false, fmt.Errorf("%s does not hold a process ID", c.PidFile())
	}
	// The number may belong to another program by now: only the holder of the
	// state directory's lock is stopped.
	if release, err := lock(filepath.Join(c.StateDir, markerName)); err == nil {
		release()
		return false, os.Remove(c.PidFile())
	}
	p, err := process.Open(pid)
	if err != nil {
		return false, nil //nolint:nilerr // it has ended meanwhile
	}
	defer p.Close()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return false, fmt.Errorf("stop process %d: %w", pid, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	defer stop()
	if err := p.Wait(); err != nil {
		return false, fmt.Errorf("wait for process %d: %w", pid, err)
	}
	return true, nil
}

// cleanNode ends all containers and removes what peri made outside of its directories.
func cleanNode(ctx context.Context, c *Config) error {
	log := slog.New(slog.DiscardHandler)
	pods := []netip.Prefix{netip.MustParsePrefix(c.ClusterCIDR)}
	services := []netip.Prefix{netip.MustParsePrefix(c.ServiceCIDR)}
	layers, err := overlayfs.Open(c.snapshotsDir(), log)
	if err != nil {
		return err
	}
	defer layers.Close()
	images, err := image.Open(c.imagesDir(), image.Options{Layers: layers, Log: log})
	if err != nil {
		return err
	}
	defer images.Close()
	network, err := bridge.New(bridge.Config{StateDir: c.networkDir(), ClusterCIDRs: pods, ServiceCIDRs: services, Log: log})
	if err != nil {
		return err
	}
	runtime, err := containers.New(containers.Config{
		StateDir: c.containersDir(), RunDir: filepath.Join(c.RunDir, "containers"), Images: imageSource{images}, Snapshots: layers,
		Network: network, OCIRuntime: c.OCIRuntime, MonitorPath: c.Monitor, CgroupParent: filepath.Join(c.CgroupRoot, "periplus"), Log: log,
	})
	if err != nil {
		return err
	}
	err = runtime.Shutdown(ctx, true)
	err = errors.Join(err, runtime.Close(), network.Cleanup())
	backend, backendErr := nftables.New(nftables.Config{ServiceCIDRs: services, PodCIDRs: pods, Log: log})
	if backendErr != nil {
		return errors.Join(err, backendErr)
	}
	err = errors.Join(err, backend.Cleanup(), backend.Close())
	for _, a := range []netip.Addr{netip.MustParseAddr(c.ClusterDNS), lonely} {
		err = errors.Join(err, link.RemoveLoopback(a))
	}
	return err
}
