package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/periplus/periplus/containers/image/blob"
	"github.com/periplus/periplus/containers/image/registry"
)

// Pull fetches ref ("nginx", "quay.io/a/b:tag", "host:5000/a@sha256:…") and
// returns the image with its layers unpacked. The registry is always asked what
// the name means; only what the store lacks is fetched. Pulls of the same thing
// with the same credentials at the same time are one.
func (s *Store) Pull(ctx context.Context, ref string, o PullOptions) (*Image, error) {
	r, err := ParseReference(ref)
	if err != nil {
		return nil, fmt.Errorf("failed to parse image reference %q: %w", ref, err)
	}
	if o.Platform == "" {
		o.Platform = s.options.Platform
	}
	if _, err := parsePlatform(o.Platform); err != nil {
		return nil, err
	}
	if r.Name() == SelfName {
		return s.pullSelf(r)
	}
	for i := range s.options.Programs {
		if p := &s.options.Programs[i]; r.Name() == p.Name && r.Tag == p.Version {
			return s.pulls.do(ctx, r.String(), func(ctx context.Context) (*Image, error) { return s.program(ctx, r, p) })
		}
	}
	img, err := s.pulls.do(ctx, r.String()+" "+o.Platform+" "+o.Auth.fingerprint(), func(ctx context.Context) (*Image, error) {
		if img := s.fromElsewhere(ctx, r); img != nil {
			return img, nil
		}
		return s.pull(ctx, r, o)
	})
	if err != nil {
		return nil, fmt.Errorf("failed to pull and unpack image %q: %w", r, err)
	}
	return img, nil
}

// fingerprint tells credentials apart without keeping them.
func (a *Auth) fingerprint() string {
	if a == nil {
		return ""
	}
	data, _ := json.Marshal(a)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func (s *Store) pull(ctx context.Context, ref Reference, o PullOptions) (*Image, error) {
	src := &source{repo: s.client.Repository(ref.Domain, ref.Path, o.Auth.config())}
	// 1. what the name means
	target, m, err := src.resolve(ctx, ref, o.Platform)
	if err != nil {
		return nil, err
	}
	manifest, err := readManifest(m.Data)
	if err != nil {
		return nil, err
	}
	// 2. nothing of it is removed while we are at it
	needed := []string{m.Digest, string(manifest.Config.Digest)}
	for _, l := range manifest.Layers {
		needed = append(needed, string(l.Digest))
	}
	release := s.hold(needed...)
	defer release()
	// 3. small blobs first: the configuration says what the layers must be
	config, err := s.smallBlob(ctx, manifest.Config, src.fetch)
	if err != nil {
		return nil, fmt.Errorf("failed to copy: %w", err)
	}
	if _, err := s.blobs.Put(m.Data); err != nil {
		return nil, err
	}
	desc := v1.Descriptor{MediaType: m.MediaType, Digest: digest.Digest(m.Digest), Size: int64(len(m.Data))}
	called := names{digests: []string{ref.Name() + "@" + target}}
	if ref.Tag != "" {
		called.tags = []string{ref.String()}
	}
	// 4. layers, and the record
	return s.install(ctx, desc, manifest, config, called, src.fetch)
}

// names are what an image is to be called.
type names struct{ tags, digests []string }

// install fetches and unpacks the layers of an image whose small blobs are
// there, and writes its record. The caller holds the blobs.
func (s *Store) install(ctx context.Context, desc v1.Descriptor, m v1.Manifest, config []byte, n names, fetch fetchFunc) (*Image, error) {
	spec, err := readConfig(config, m)
	if err != nil {
		return nil, err
	}
	if err := s.ensure(ctx, m.Layers, spec, fetch); err != nil {
		return nil, err
	}
	r := record{
		ID: string(m.Config.Digest), Manifest: desc, Config: m.Config, Layers: m.Layers, Spec: spec,
		Tags: n.tags, Digests: n.digests,
	}
	if err := s.blobs.Sync(); err != nil {
		s.release(r.chainID())
		return nil, err
	}
	return s.add(r)
}

func (s *Store) release(chainID string) {
	if chainID != "" {
		s.layers.Release(chainID)
	}
}

// add enters an image whose top layer is pinned, or gives more names to one that
// is there. Names that other images had are theirs no more.
func (s *Store) add(r record) (*Image, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	r.Updated = time.Now()
	s.mu.Lock()
	old := s.images[r.ID]
	s.mu.Unlock()
	if old != nil && old.held && old.record.covers(r) { // nothing new: nothing is written
		s.release(r.chainID())
		return old.image, nil
	}
	if old != nil {
		r = r.addNames(old.record.Tags, old.record.Digests)
		r.Pinned = r.Pinned || old.record.Pinned
		if old.held { // one pin is enough
			s.release(r.chainID())
		}
	} else {
		r = r.addNames(nil, nil)
	}
	if err := s.replace(old, r, true); err != nil {
		if old == nil || !old.held {
			s.release(r.chainID())
		}
		return nil, err
	}
	s.mu.Lock()
	img := s.images[r.ID].image
	var losers []*entry
	for _, e := range s.images {
		if e.record.ID != r.ID && slices.ContainsFunc(e.record.Tags, func(t string) bool { return slices.Contains(r.Tags, t) }) {
			losers = append(losers, e)
		}
	}
	s.mu.Unlock()
	for _, e := range losers { // after the new record: a name is never lost
		lost := e.record
		lost.Tags = slices.DeleteFunc(slices.Clone(lost.Tags), func(t string) bool { return slices.Contains(r.Tags, t) })
		var err error
		if len(lost.Tags)+len(lost.Digests) == 0 {
			err = s.drop(e)
		} else {
			err = s.replace(e, lost, e.held)
		}
		if err != nil {
			return nil, err
		}
	}
	return img, nil
}

// smallBlob returns a configuration, and fetches it if need be.
func (s *Store) smallBlob(ctx context.Context, d v1.Descriptor, fetch fetchFunc) ([]byte, error) {
	data, err := s.blobs.Read(string(d.Digest), maxConfig)
	if err == nil {
		return data, nil
	}
	w, err := s.blobs.Create()
	if err != nil {
		return nil, err
	}
	defer w.Abort(nil)
	if err := fetch(ctx, d, w); err != nil {
		return nil, err
	}
	if err := w.Commit(string(d.Digest), d.Size); err != nil {
		return nil, err
	}
	return s.blobs.Read(string(d.Digest), maxConfig)
}

// source is a repository as a source of blobs.
type source struct {
	repo *registry.Repository
	seen sync.Map // digests that came once; asked for again, they were not right
}

// resolve finds the manifest for a platform. target is the digest that the name
// stands for: the index's, if there is one.
func (s *source) resolve(ctx context.Context, ref Reference, platform string) (target string, m registry.Manifest, err error) {
	what := ref.Tag
	if ref.Digest != "" {
		what = ref.Digest
	}
	fail := func(err error) (string, registry.Manifest, error) {
		if errors.Is(err, registry.ErrNotFound) {
			err = fmt.Errorf("%s: %w", ref, err)
		}
		return "", m, fmt.Errorf("failed to resolve reference %q: %w", ref, err)
	}
	if m, err = s.repo.Manifest(ctx, what); err != nil {
		return fail(err)
	}
	target = m.Digest
	for range 3 { // an index of indexes is allowed, an endless one is not
		index, err := isIndex(m.Data)
		if err != nil {
			return "", m, err
		}
		if !index {
			return target, m, nil
		}
		d, err := choose(m.Data, platform)
		if err != nil {
			return "", m, err
		}
		if m, err = s.repo.Manifest(ctx, string(d.Digest)); err != nil {
			return fail(err)
		}
	}
	return "", m, errors.New("the indexes are nested too deeply")
}

const (
	// stallTimeout ends a download that brings nothing.
	stallTimeout = 90 * time.Second
	// fetchAttempts bounds how often a broken download is taken up again without progress.
	fetchAttempts = 4
)

// fetch downloads a blob and takes up a broken connection where it broke.
func (s *source) fetch(ctx context.Context, d v1.Descriptor, w *blob.Writer) error {
	if _, again := s.seen.LoadOrStore(d.Digest, true); again {
		s.repo.Suspect()
	}
	failures := 0
	for {
		before := w.Size()
		err := s.fetchRest(ctx, d, w)
		if err == nil || ctx.Err() != nil || errors.Is(err, registry.ErrNotFound) || errors.Is(err, registry.ErrDenied) || errors.Is(err, blob.ErrCorrupt) {
			return err
		}
		s.repo.Suspect()
		if failures++; w.Size() > before {
			failures = 1
		}
		if failures == fetchAttempts {
			return err
		}
		retry := time.NewTimer(100 * time.Millisecond << failures)
		select {
		case <-retry.C:
		case <-ctx.Done():
			retry.Stop()
			return ctx.Err()
		}
	}
}

// fetchRest downloads what w lacks, in one request.
func (s *source) fetchRest(ctx context.Context, d v1.Descriptor, w *blob.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := fmt.Errorf("%s: no data for %s", d.Digest, stallTimeout)
	timer := time.AfterFunc(stallTimeout, func() { cancel(stalled) })
	defer timer.Stop()
	body, err := s.repo.Blob(ctx, string(d.Digest), w.Size(), d.Size)
	if err == nil {
		defer body.Close()
		_, err = io.Copy(w, &watched{io.LimitReader(body, d.Size-w.Size()+1), timer})
		if err == nil && w.Size() < d.Size {
			err = fmt.Errorf("%s: %w after %d of %d bytes", d.Digest, io.ErrUnexpectedEOF, w.Size(), d.Size)
		}
		if err == nil && w.Size() > d.Size {
			err = fmt.Errorf("%s: %w: more than %d bytes", d.Digest, blob.ErrCorrupt, d.Size)
		}
	}
	if err != nil && errors.Is(context.Cause(ctx), stalled) {
		return stalled
	}
	return err
}

// watched puts the stall timer off with everything that comes.
type watched struct {
	io.Reader
	timer *time.Timer
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.timer.Reset(stallTimeout)
	}
	return n, err
}
