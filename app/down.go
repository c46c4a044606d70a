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
	"time"

	"github.com/periplus/periplus/cni/bridge"
	"github.com/periplus/periplus/cni/policy"
	"github.com/periplus/periplus/containers"
	"github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/containers/snapshot/overlayfs"
	gatewayprocess "github.com/periplus/periplus/gateway/process"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/journey/answer"
	"github.com/periplus/periplus/kubelet/bootstrap"
	"github.com/periplus/periplus/linux/link"
	"github.com/periplus/periplus/linux/podcgroup"
	"github.com/periplus/periplus/linux/process"
	"github.com/periplus/periplus/proxy"
	proxyall "github.com/periplus/periplus/proxy/all"
	"github.com/periplus/periplus/volume"
	volumeall "github.com/periplus/periplus/volume/all"
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
	if _, settings, err := bootstrap.Open(c.agentDir(), c.NodeName); err == nil {
		// A node of a cluster that is set up as its servers said.
		if err := c.adopt(settings); err != nil {
			return err
		}
	}
	if err := cleanNode(ctx, c); err != nil {
		return err
	}
	fmt.Fprintln(o.Out, "Containers, networks and rules are gone.")
	if !o.Purge {
		return nil
	}
	if err := noMounts(c.StateDir); err != nil {
		return err
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

// noMounts refuses to delete a directory in which something is mounted still:
// deleting would reach what is behind the mount.
func noMounts(dir string) error {
	data, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return fmt.Errorf("list the mounts: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) > 4 && (fields[4] == dir || strings.HasPrefix(fields[4], dir+"/")) {
			return fmt.Errorf("%s is still mounted: the state in %s is not deleted", fields[4], dir)
		}
	}
	return nil
}

// endContainers takes over what runs, and ends it.
func endContainers(ctx context.Context, runtime *containers.Runtime) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		err := runtime.Run(running)
		stop() // if it could not begin, there is nothing to wait for
		ended <- err
	}()
	err := runtime.Shutdown(running, true)
	stop()
	return errors.Join(err, <-ended)
}

// cleanVolumes unmounts the volumes of all pods.
func cleanVolumes(ctx context.Context, c *Config, log *slog.Logger) error {
	driven := c.csiVolumes(c.drivers(log), nil, journey.Discard, nil)
	host, err := volume.NewHost(volume.Config{Root: c.kubeletDir(), Plugins: volumeall.Plugins(driven), Sources: noSources{}, Log: log})
	if err != nil {
		return err
	}
	pods, err := host.Pods()
	for _, uid := range pods {
		err = errors.Join(err, host.Remove(ctx, uid))
	}
	return errors.Join(err, driven.CleanStaged(ctx))
}

// cleanCgroups removes the cgroups of pods.
func cleanCgroups(c *Config) error {
	tree, err := podcgroup.New(c.CgroupRoot)
	if err != nil {
		return err
	}
	return tree.RemoveAll()
}

// noSources are the Sources of a node that mounts nothing any more.
type noSources struct{ volume.Sources }

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
	if err := gatewayprocess.Stop(ctx, c.gatewaySocket()); err != nil {
		return fmt.Errorf("end the gateway: %w", err)
	}
	err = errors.Join(endContainers(ctx, runtime), network.Cleanup(), cleanBackbones(), policy.Cleanup(), cleanVolumes(ctx, c, log), cleanCgroups(c))
	err = errors.Join(err, proxyall.Cleanup(proxy.BackendConfig{ServiceCIDRs: services, PodCIDRs: pods, Log: log}), cleanAnswers(log))
	for _, a := range []netip.Addr{netip.MustParseAddr(c.ClusterDNS), lonely} {
		err = errors.Join(err, link.RemoveLoopback(a))
	}
	return errors.Join(err, cleanRun(c))
}

// cleanAnswers removes the rules that wait for first answers.
func cleanAnswers(log *slog.Logger) error {
	w, err := answer.New(answer.Config{OnAnswer: func(netip.Addr, time.Time) {}, Log: log})
	if err != nil {
		return err
	}
	return errors.Join(w.Cleanup(), w.Close())
}

// cleanRun removes what a killed peri has left in the run directory: sockets, its
// number, and the file that the number was being written to.
func cleanRun(c *Config) error {
	left, err := filepath.Glob(filepath.Join(c.RunDir, "."+filepath.Base(c.PidFile())+".*"))
	for _, path := range append(left, c.PidFile(), c.etcdSocket(), c.criSocket(), c.adminSocket(), c.gatewaySocket(), c.gatewayConfig()) {
		if e := os.Remove(path); !errors.Is(e, os.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
