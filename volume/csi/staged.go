package csi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/linux/mount"
)

// CleanStaged takes volumes off the node that are staged for no pod: an earlier
// process ended in between. It opens no driver if there is none.
func (p *Plugin) CleanStaged(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(p.config.Root, "plugins", "kubernetes.io", "csi", "*", "*", dataFile))
	if err != nil {
		return err
	}
	var errs []error
	for _, f := range files {
		if err := p.cleanOne(ctx, filepath.Dir(f)); err != nil {
			errs = append(errs, fmt.Errorf("volume staged at %s: %w", filepath.Dir(f), err))
		}
	}
	return errors.Join(errs...)
}

func (p *Plugin) cleanOne(ctx context.Context, dir string) error {
	d, err := readData(dir)
	if err != nil || d == nil {
		return err
	}
	defer p.lock(d.Driver, d.Handle)()
	users, err := p.published(d.Driver, d.Handle)
	if err != nil || len(users) > 0 {
		return err
	}
	staging := filepath.Join(dir, globalMount)
	if _, err := os.Stat(dir); err != nil {
		return nil //nolint:nilerr // unstaged meanwhile
	}
	driver, err := p.config.Drivers.Get(d.Driver)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	if _, err := driver.NodeUnstageVolume(call, &csipb.NodeUnstageVolumeRequest{VolumeId: d.Handle, StagingTargetPath: staging}); err != nil {
		return errors.New(csi.Message(err))
	}
	if mounted, err := mount.IsPoint(staging); err != nil || mounted {
		return errors.Join(err, fmt.Errorf("%s is still mounted", staging))
	}
	return removeEmpty(dir)
}
