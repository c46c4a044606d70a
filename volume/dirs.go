package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/linux/mount"
)

// The layout on disk is upstream's, so that a node can change hands:
//
//	<root>/pods/<uid>/volumes/kubernetes.io~<kind>/<volume>
//	<root>/pods/<uid>/volume-subpaths/<volume>/<container>/<index>
const (
	podsDir     = "pods"
	volumesDir  = "volumes"
	subPathsDir = "volume-subpaths"
)

// PodDir is the pod's own directory, <root>/pods/<uid>.
func (h *Host) PodDir(uid types.UID) string {
	return filepath.Join(h.config.Root, podsDir, string(uid))
}

func (h *Host) volumeDir(uid types.UID, plugin, volume string) string {
	return filepath.Join(h.PodDir(uid), volumesDir, strings.ReplaceAll(plugin, "/", "~"), volume)
}

func checkUID(uid types.UID) error {
	if s := string(uid); s == "" || s == "." || s == ".." || strings.ContainsAny(s, "/\x00") {
		return fmt.Errorf("pod UID %q cannot name a directory", s)
	}
	return nil
}

// Pods lists the pods that have a directory on the node, mounted or left over.
func (h *Host) Pods() ([]types.UID, error) {
	entries, err := os.ReadDir(filepath.Join(h.config.Root, podsDir))
	if err != nil {
		return nil, ignoreAbsent(err)
	}
	uids := make([]types.UID, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() {
			uids = append(uids, types.UID(e.Name()))
		}
	}
	return uids, nil
}

// Unmount removes all volumes of the pod, also those that an earlier process
// mounted: it goes by what is on disk. The pod's other files stay; its directory
// goes when it is empty. It succeeds when nothing is there.
func (h *Host) Unmount(ctx context.Context, uid types.UID) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	h.mu.Lock()
	s := h.pods[uid]
	h.mu.Unlock()
	if s != nil {
		s.busy.Lock()
		defer s.busy.Unlock()
		h.forget(uid, s)
	}
	dir := h.PodDir(uid)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := Remove(filepath.Join(dir, subPathsDir)); err != nil {
		return fmt.Errorf("pod %s: sub-paths: %w", uid, err)
	}
	errs := h.tearDown(ctx, filepath.Join(dir, volumesDir))
	if len(errs) > 0 {
		return fmt.Errorf("pod %s: %w", uid, errors.Join(errs...))
	}
	_ = os.Remove(dir) // only if it is empty
	return nil
}

// Remove unmounts the pod's volumes and removes its directory with all that is in it.
func (h *Host) Remove(ctx context.Context, uid types.UID) error {
	if err := h.Unmount(ctx, uid); err != nil {
		return err
	}
	dir := h.PodDir(uid)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	points, err := mount.Under(dir)
	if err != nil {
		return err
	}
	if len(points) > 0 {
		return fmt.Errorf("pod %s: %s is still mounted; its directory is kept", uid, points[0])
	}
	return os.RemoveAll(dir)
}

func (h *Host) forget(uid types.UID, s *podState) {
	h.mu.Lock()
	known := h.pods[uid] == s
	if known {
		h.unindexLocked(uid, s)
		delete(h.pods, uid)
		delete(h.dirty, uid)
	}
	h.scheduleLocked(s, time.Time{})
	s.gone, s.mounted, s.failed = true, false, false
	h.mu.Unlock()
	if known && h.tracker != nil {
		h.tracker.RemovePod(uid)
	}
}

func (h *Host) tearDown(ctx context.Context, dir string) (errs []error) {
	kinds, err := os.ReadDir(dir)
	if err != nil {
		return appendNonNil(nil, ignoreAbsent(err))
	}
	for _, kind := range kinds {
		kindDir := filepath.Join(dir, kind.Name())
		volumes, err := os.ReadDir(kindDir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		plugin := h.pluginNamed(strings.ReplaceAll(kind.Name(), "~", "/"))
		for _, v := range volumes {
			if plugin == nil {
				errs = append(errs, fmt.Errorf("volume %s: no plug-in is named %s any more; it stays mounted", v.Name(), kind.Name()))
				continue
			}
			if err := plugin.TearDown(ctx, filepath.Join(kindDir, v.Name())); err != nil {
				errs = append(errs, fmt.Errorf("UnmountVolume.TearDown failed for volume %q: %w", v.Name(), err))
			}
		}
		if len(errs) == 0 {
			errs = appendNonNil(errs, ignoreAbsent(os.Remove(kindDir)))
		}
	}
	if len(errs) == 0 {
		errs = appendNonNil(errs, ignoreAbsent(os.Remove(dir)))
	}
	return errs
}

func (h *Host) pluginNamed(name string) Plugin {
	for _, p := range h.config.Plugins {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

func appendNonNil(errs []error, err error) []error {
	if err != nil {
		errs = append(errs, err)
	}
	return errs
}
