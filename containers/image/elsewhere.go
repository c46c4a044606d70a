package image

import "context"

// fromElsewhere imports an image that another store on this machine has; nil when
// none has it. A name with a digest is the registry's to answer.
func (s *Store) fromElsewhere(ctx context.Context, r Reference) *Image {
	if s.options.Elsewhere == nil || r.Tag == "" || r.Digest != "" {
		return nil
	}
	archive, err := s.options.Elsewhere(ctx, r.String())
	if err != nil {
		return nil
	}
	defer archive.Close()
	got, err := s.Import(ctx, archive, ImportOptions{Name: r.String()})
	if err != nil || len(got) == 0 {
		s.options.Log.Warn("an image of another node of this machine cannot be taken over; asking its registry", "image", r.String(), "err", err)
		return nil
	}
	return got[0]
}
