package imagegc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
)

// detectEvery is how often it is looked which images are in use.
const detectEvery = 5 * time.Minute

// Images is the part of cri.Images that is needed.
type Images interface {
	ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error)
	ImageStatus(context.Context, *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error)
	RemoveImage(context.Context, *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error)
}

// Containers lists the runtime's containers.
type Containers interface {
	ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error)
}

// Policy says what is removed when. The defaults are upstream's.
type Policy struct {
	// HighPercent of the disk in use begins a collection, which ends at LowPercent.
	HighPercent, LowPercent int
	// MinAge is how long an image is kept at least, MaxAge how long it is kept unused
	// at most; 0: for ever.
	MinAge, MaxAge time.Duration
}

// DefaultPolicy is 85 %, 80 %, 2 minutes and no maximum.
func DefaultPolicy() Policy { return Policy{HighPercent: 85, LowPercent: 80, MinAge: 2 * time.Minute} }

// Validate names the field that is wrong.
func (p Policy) Validate() error {
	switch {
	case p.HighPercent < 0 || p.HighPercent > 100:
		return fmt.Errorf("image-gc-high-threshold: %d is not allowed: must be between 0 and 100", p.HighPercent)
	case p.LowPercent < 0 || p.LowPercent > 100:
		return fmt.Errorf("image-gc-low-threshold: %d is not allowed: must be between 0 and 100", p.LowPercent)
	case p.LowPercent > p.HighPercent:
		return fmt.Errorf("image-gc-low-threshold: %d is not allowed: must not be higher than image-gc-high-threshold %d", p.LowPercent, p.HighPercent)
	case p.MinAge < 0:
		return fmt.Errorf("minimum-image-ttl-duration: %v is not allowed: must not be negative", p.MinAge)
	case p.MaxAge != 0 && p.MaxAge < p.MinAge:
		return fmt.Errorf("maximum-image-gc-age: %v is not allowed: must not be less than minimum-image-ttl-duration %v", p.MaxAge, p.MinAge)
	}
	return nil
}

// Config of a Collector.
type Config struct {
	Policy
	Images     Images
	Containers Containers
	// Named are the images that pods of the node name, as they name them.
	Named func() []string
	// Disk returns size and free space in bytes of the file system of the images.
	Disk func(context.Context) (capacity, available int64, err error)
	// Event is told what the node's owner should know.
	Event func(kind, reason, message string)
	// Count, if not nil, is told why each image was removed: space or age.
	Count func(why string)
	// Removed is called after images were removed.
	Removed func()
	Log     *slog.Logger
}

// A Collector removes images. Its methods may be called from several goroutines.
type Collector struct {
	cfg   Config
	began time.Time

	mu       sync.Mutex         // held during a collection; guards the rest
	records  map[string]*record // by image ID
	detected time.Time          // last
	failed   time.Time          // when too little could be freed
}

type record struct {
	first, used time.Time
	size        int64
	pinned      bool
}

// candidate is an image that may go.
type candidate struct {
	id string
	record
}

// New returns a Collector.
func New(c Config) (*Collector, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Collector{cfg: c, began: time.Now(), records: map[string]*record{}}, nil
}

// Tick looks at the disk and removes what has to go. It is cheap when nothing has.
func (c *Collector) Tick(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.detected.IsZero() || now.Sub(c.detected) >= detectEvery {
		unused, err := c.detectLocked(ctx, now)
		if err == nil {
			err = c.oldLocked(ctx, unused, now)
		}
		if err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("unused images cannot be looked for", base.KeyError, err)
			return
		}
	}
	if now.Sub(c.failed) < detectEvery {
		return
	}
	if err := c.collectLocked(ctx, now); err != nil && ctx.Err() == nil {
		c.failed = now
		c.cfg.Log.Warn("image garbage collection failed", base.KeyError, err)
	}
}

// collectLocked frees space if the disk is too full.
func (c *Collector) collectLocked(ctx context.Context, now time.Time) error {
	capacity, available, err := c.cfg.Disk(ctx)
	if err != nil {
		return err
	}
	available = min(available, capacity)
	if capacity == 0 {
		err := errors.New("invalid capacity 0 on image filesystem")
		c.cfg.Event(corev1.EventTypeWarning, "InvalidDiskCapacity", err.Error())
		return err
	}
	percent := 100 - int(available*100/capacity)
	if percent < c.cfg.HighPercent || c.cfg.HighPercent == 100 {
		return nil
	}
	want := capacity*int64(100-c.cfg.LowPercent)/100 - available
	c.cfg.Log.Info("the disk of the images is too full, unused images go", "percent", percent, "bytes", want)
	unused, err := c.detectLocked(ctx, now)
	if err != nil {
		return err
	}
	freed, err := c.freeLocked(ctx, unused, want, now)
	if err != nil {
		return err
	}
	if freed < want {
		err := fmt.Errorf("Insufficient free disk space on the node's image filesystem (%d%% of %s used). "+ //nolint:staticcheck // upstream's wording
			"Failed to free sufficient space by deleting unused images (freed %d bytes). "+
			"Investigate disk usage, as it could be used by active images, logs, volumes, or other data.", percent, size(capacity), freed)
		c.cfg.Event(corev1.EventTypeWarning, "FreeDiskSpaceFailed", err.Error())
		return err
	}
	return nil
}

// RemoveUnused removes all images that are not in use, whatever the disk is like.
func (c *Collector) RemoveUnused(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	unused, err := c.detectLocked(ctx, now)
	if err != nil {
		return err
	}
	_, err = c.freeLocked(ctx, unused, math.MaxInt64, now)
	return err
}

// detectLocked brings the records up to date and returns the images that are not in
// use, the least recently used first.
func (c *Collector) detectLocked(ctx context.Context, now time.Time) ([]candidate, error) {
	images, err := c.cfg.Images.ListImages(ctx, &runtimeapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	containers, err := c.cfg.Containers.ListContainers(ctx, &runtimeapi.ListContainersRequest{})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	inUse := map[string]bool{}
	for _, v := range containers.Containers {
		inUse[v.GetImageId()], inUse[v.GetImageRef()], inUse[v.GetImage().GetImage()] = true, true, true
	}
	for _, name := range c.cfg.Named() {
		if r, err := c.cfg.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: name}}); err == nil && r.GetImage() != nil {
			inUse[r.GetImage().GetId()] = true
		}
	}
	current := map[string]*record{}
	var unused []candidate
	for _, img := range images.Images {
		r := c.records[img.Id]
		if r == nil {
			r = &record{first: now}
		}
		used := inUse[img.Id]
		for _, names := range [][]string{img.RepoTags, img.RepoDigests} {
			for _, n := range names {
				used = used || inUse[n]
			}
		}
		if used {
			r.used = now
		}
		r.size, r.pinned = int64(img.Size), img.Pinned //nolint:gosec // images are smaller than 2^63
		current[img.Id] = r
		if !used && !r.pinned {
			unused = append(unused, candidate{img.Id, *r})
		}
	}
	c.records, c.detected = current, now
	slices.SortFunc(unused, func(a, b candidate) int {
		return cmp.Or(a.used.Compare(b.used), a.first.Compare(b.first), cmp.Compare(a.id, b.id))
	})
	return unused, nil
}

// oldLocked removes images that were not used for longer than the maximum age. Since
// nobody knows what was used before this life, it waits that long first.
func (c *Collector) oldLocked(ctx context.Context, unused []candidate, now time.Time) error {
	if c.cfg.MaxAge == 0 || now.Sub(c.began) <= c.cfg.MaxAge {
		return nil
	}
	var errs []error
	removed := false
	for _, i := range unused {
		if now.Sub(i.used) > c.cfg.MaxAge && now.Sub(i.first) > c.cfg.MaxAge {
			err := c.removeLocked(ctx, i, "age")
			errs, removed = append(errs, err), removed || err == nil
		}
	}
	if removed && c.cfg.Removed != nil {
		c.cfg.Removed()
	}
	return errors.Join(errs...)
}

// freeLocked removes images until so many bytes are free.
func (c *Collector) freeLocked(ctx context.Context, unused []candidate, want int64, now time.Time) (freed int64, err error) {
	var errs []error
	for _, i := range unused {
		if !i.used.Before(now) || now.Sub(i.first) < c.cfg.MinAge {
			continue
		}
		if err := c.removeLocked(ctx, i, "space"); err != nil {
			errs = append(errs, err)
			continue
		}
		if freed += i.size; freed >= want {
			break
		}
	}
	if freed > 0 && c.cfg.Removed != nil {
		c.cfg.Removed()
	}
	if len(errs) > 0 {
		return freed, fmt.Errorf("wanted to free %d bytes, but freed %d bytes space with errors in image deletion: %w", want, freed, errors.Join(errs...))
	}
	return freed, nil
}

func (c *Collector) removeLocked(ctx context.Context, i candidate, why string) error {
	if _, err := c.cfg.Images.RemoveImage(ctx, &runtimeapi.RemoveImageRequest{Image: &runtimeapi.ImageSpec{Image: i.id}}); err != nil {
		return fmt.Errorf("image %s: %w", i.id, err)
	}
	delete(c.records, i.id)
	if c.cfg.Count != nil {
		c.cfg.Count(why)
	}
	c.cfg.Log.Info("an unused image is removed", base.KeyImage, i.id, "bytes", i.size, "reason", why)
	return nil
}

// size is a number of bytes for people: 12.3Gi.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	v, i := float64(n), 0
	for v >= 1024 && i < len(units)-1 {
		v /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[i])
}
