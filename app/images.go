package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/periplus/periplus/containers"
	"github.com/periplus/periplus/containers/image"
)

// imageSource shows the image store to the container runtime.
type imageSource struct{ store *image.Store }

var _ containers.ImageStore = imageSource{}

// Image implements containers.ImageStore.
func (s imageSource) Image(ctx context.Context, ref string) (containers.Image, error) {
	img, err := s.store.Get(ref)
	if err != nil {
		if errors.Is(err, image.ErrNotFound) {
			return containers.Image{}, fmt.Errorf("%s: %w", ref, containers.ErrNoImage)
		}
		return containers.Image{}, err
	}
	// Layers that a power loss has damaged are unpacked again from their blobs.
	_, release, err := s.store.Unpack(ctx, img)
	if err != nil {
		return containers.Image{}, err
	}
	release()
	out := containers.Image{ID: img.ID, ChainID: img.ChainID, Config: img.Config.Config}
	if len(img.RepoTags) > 0 {
		out.Name = img.RepoTags[0]
	}
	if len(img.RepoDigests) > 0 {
		out.Ref = img.RepoDigests[0]
	}
	return out, nil
}
