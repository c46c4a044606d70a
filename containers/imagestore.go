package containers

import (
	"context"
	"errors"
	"fmt"

	"github.com/periplus/periplus/containers/image"
)

// StoreImages makes the node's image store the ImageStore of a Runtime.
func StoreImages(s *image.Store) ImageStore { return storeImages{s} }

type storeImages struct{ store *image.Store }

func (s storeImages) Image(_ context.Context, ref string) (Image, error) {
	img, err := s.store.Get(ref)
	if err != nil {
		if errors.Is(err, image.ErrNotFound) {
			return Image{}, fmt.Errorf("%w: %w", ErrNoImage, err)
		}
		return Image{}, err
	}
	out := Image{ID: img.ID, ChainID: img.ChainID, Config: img.Config.Config}
	if len(img.RepoTags) > 0 {
		out.Name = img.RepoTags[0]
	}
	if len(img.RepoDigests) > 0 {
		out.Ref = img.RepoDigests[0]
	}
	return out, nil
}
