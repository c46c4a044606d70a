package image

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/periplus/periplus/containers/image/blob"
)

// fetchFunc brings a blob that the store has not got.
type fetchFunc func(ctx context.Context, d v1.Descriptor, w *blob.Writer) error

// noSource is the fetchFunc for when all blobs should be there.
func noSource(_ context.Context, d v1.Descriptor, _ *blob.Writer) error {
	return fmt.Errorf("%s: %w", d.Digest, blob.ErrNotFound)
}

// ensure makes sure that all layers of an image are in the content store and
// unpacked, and pins the top one for the caller.
//
// All layers are fetched and unpacked side by side, each into a directory of
// its own; only the commits, which need the layer below, go in order.
func (s *Store) ensure(ctx context.Context, layers []v1.Descriptor, spec v1.Image, fetch fetchFunc) (err error) {
	ids := chainIDs(spec.RootFS.DiffIDs)
	pinned := make([]bool, len(ids))
	committed := make([]chan struct{}, len(ids))
	for i := range committed {
		committed[i] = make(chan struct{})
	}
	slots := make(chan struct{}, s.options.Downloads)
	group, ctx := errgroup.WithContext(ctx)
	for i, d := range layers {
		l := layerJob{store: s, desc: d, diffID: string(spec.RootFS.DiffIDs[i]), chainID: ids[i], slots: slots}
		if i > 0 {
			l.parent, l.below = ids[i-1], committed[i-1]
		}
		group.Go(func() error {
			err := l.run(ctx, fetch)
			if err == nil {
				pinned[i] = true
				close(committed[i])
			}
			return err
		})
	}
	err = group.Wait()
	for i, p := range pinned {
		if p && (err != nil || i < len(ids)-1) { // each layer holds the one below
			s.layers.Release(ids[i])
		}
	}
	return err
}

// layerJob is the way of one layer into the snapshotter.
type layerJob struct {
	store           *Store
	desc            v1.Descriptor
	diffID          string
	chainID, parent string
	below           <-chan struct{} // closed when the parent is committed; nil: there is none
	slots           chan struct{}
}

// run leaves the layer pinned if it returns nil.
func (l *layerJob) run(ctx context.Context, fetch fetchFunc) (err error) {
	s := l.store
	unlock, err := s.chains.lock(ctx, l.chainID)
	if err != nil {
		return err
	}
	defer unlock()

	have := s.layers.Acquire(l.chainID)
	if have {
		defer func() {
			if err != nil {
				s.layers.Release(l.chainID)
			}
		}()
	}
	if have && s.blobs.Has(string(l.desc.Digest)) {
		return nil
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	var staged string
	for range 2 { // the second time from another mirror
		if have { // the same files came in another compression
			err = l.download(ctx, fetch)
		} else {
			staged, err = l.stage(ctx, fetch)
		}
		if !errors.Is(err, blob.ErrCorrupt) {
			break
		}
	}
	<-l.slots
	if err != nil || have {
		return err
	}
	if l.below != nil {
		select {
		case <-l.below:
		case <-ctx.Done():
			s.layers.Discard(staged)
			return ctx.Err()
		}
	}
	if err := s.layers.Commit(ctx, staged, l.chainID, l.parent, l.reopen); err != nil {
		return fmt.Errorf("failed to extract layer %s: %w", l.diffID, err)
	}
	return nil
}

// reopen reads the layer's uncompressed content again.
func (l *layerJob) reopen() (io.ReadCloser, error) {
	r, err := l.store.blobs.Reader(string(l.desc.Digest))
	if err != nil {
		return nil, err
	}
	z, err := decompress(r)
	if err != nil {
		r.Close()
		return nil, err
	}
	return &joined{z, r}, nil
}

// joined closes what it reads from as well.
type joined struct {
	io.ReadCloser
	under io.Closer
}

func (j *joined) Close() error { return errors.Join(j.ReadCloser.Close(), j.under.Close()) }

// download brings the blob alone.
func (l *layerJob) download(ctx context.Context, fetch fetchFunc) error {
	w, err := l.store.blobs.Create()
	if err != nil {
		return err
	}
	defer w.Abort(nil)
	if err := fetch(ctx, l.desc, w); err != nil {
		return fmt.Errorf("failed to copy: %w", err)
	}
	return w.Commit(string(l.desc.Digest), l.desc.Size)
}

// stage unpacks the layer: from the content store, or while it is being fetched into it.
func (l *layerJob) stage(ctx context.Context, fetch fetchFunc) (string, error) {
	s := l.store
	if s.blobs.Has(string(l.desc.Digest)) {
		staged, err := l.stageStored(ctx)
		if !errors.Is(err, blob.ErrCorrupt) {
			return staged, err
		}
		if err := s.blobs.Delete(string(l.desc.Digest)); err != nil { // a bad disk; fetch it again
			return "", err
		}
	}
	w, err := s.blobs.Create()
	if err != nil {
		return "", err
	}
	defer w.Abort(nil)
	r, err := w.Follow()
	if err != nil {
		return "", err
	}
	defer r.Close()

	// 1. unpack what has come so far, in a goroutine; it ends because the writer does
	type result struct {
		staged string
		err    error
	}
	unpacked := make(chan result, 1)
	fetchCtx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		staged, err := l.unpack(ctx, r)
		if err != nil {
			stop() // no use in fetching the rest
		}
		unpacked <- result{staged, err}
	}()
	// 2. fetch, verify, flush
	fetchErr := fetch(fetchCtx, l.desc, w)
	stopped := fetchErr != nil && fetchCtx.Err() != nil && ctx.Err() == nil
	if fetchErr != nil {
		fetchErr = fmt.Errorf("failed to copy: %w", fetchErr)
		w.Abort(fetchErr)
	} else {
		fetchErr = w.Commit(string(l.desc.Digest), l.desc.Size)
	}
	// 3. both must have succeeded
	u := <-unpacked
	if fetchErr != nil {
		s.layers.Discard(u.staged)
		if stopped {
			return "", u.err
		}
		return "", fetchErr
	}
	return u.staged, u.err
}

func (l *layerJob) stageStored(ctx context.Context) (string, error) {
	r, err := l.store.blobs.Reader(string(l.desc.Digest))
	if err != nil {
		return "", err
	}
	defer r.Close()
	return l.unpack(ctx, r)
}

// unpack decompresses, unpacks and checks the content against the diff ID.
func (l *layerJob) unpack(ctx context.Context, r io.Reader) (string, error) {
	fail := func(err error) (string, error) {
		return "", fmt.Errorf("failed to extract layer %s: %w", l.diffID, err)
	}
	z, err := decompress(r)
	if err != nil {
		return fail(err)
	}
	defer z.Close()
	a := readAhead(z)
	staged, err := l.store.layers.Stage(ctx, a)
	if err == nil { // Stage has read a to its end; r may have a tail, which belongs to the digest
		_, err = io.Copy(io.Discard, r)
	}
	a.Close()
	if err == nil && a.digest() != l.diffID {
		err = fmt.Errorf("wrong diff id calculated on extraction %q", a.digest())
	}
	if err != nil {
		l.store.layers.Discard(staged)
		return fail(err)
	}
	return staged, nil
}

// Unpack makes sure that the image's layers are there (a power loss may have cost them)
// and acquires the top one for the caller, who calls release once a container is prepared on it.
func (s *Store) Unpack(ctx context.Context, img *Image) (chainID string, release func(), err error) {
	if img.ChainID == "" {
		return "", func() {}, nil
	}
	release = func() { s.layers.Release(img.ChainID) }
	if s.layers.Acquire(img.ChainID) {
		return img.ChainID, release, nil
	}
	s.mu.Lock()
	e := s.images[img.ID]
	s.mu.Unlock()
	if e == nil {
		return "", nil, fmt.Errorf("image %s: %w", img.ID, ErrNotFound)
	}
	if e.record.Self != "" {
		return "", nil, fmt.Errorf("image %s: its layer is lost, EnsureSelf makes it anew: %w", img.ID, ErrNotFound)
	}
	if err := s.ensure(ctx, e.record.Layers, e.record.Spec, noSource); err != nil {
		return "", nil, fmt.Errorf("failed to unpack image %s: %w", img.ID, err)
	}
	s.keepTop(e)
	return img.ChainID, release, nil
}

// keepTop pins the top layer for the image itself if it was not.
func (s *Store) keepTop(e *entry) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.images[e.record.ID]; now != nil && !now.held {
		now.held = s.layers.Acquire(now.record.chainID())
	}
}
