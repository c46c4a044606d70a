package volume

import (
	"errors"
	"fmt"
)

// ErrNoPlugin is wrapped in the error of a volume whose kind no plug-in supports.
var ErrNoPlugin = errors.New("no volume plugin matched")

// A MountError says why one volume could not be mounted. Its text is the message
// of the event FailedMount.
type MountError struct {
	Volume string
	Err    error
}

func (e *MountError) Error() string {
	if errors.Is(e.Err, ErrNoPlugin) {
		return fmt.Sprintf("failed to get Plugin from volumeSpec for volume %q err=%v", e.Volume, e.Err)
	}
	var claim *claimError
	if errors.As(e.Err, &claim) {
		return fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], failed to process volumes=[%s]: %v", e.Volume, e.Volume, e.Err)
	}
	var phase *PhaseError
	if errors.As(e.Err, &phase) {
		return fmt.Sprintf("%s failed for volume %q : %v", phase.Phase, phase.Volume, e.Err)
	}
	// The blank before the colon is upstream's.
	return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %v", e.Volume, e.Err)
}

func (e *MountError) Unwrap() error { return e.Err }

// MountErrors takes the error of Mount apart: one element for each volume that failed.
func MountErrors(err error) []*MountError {
	var out []*MountError
	var walk func(error)
	walk = func(err error) {
		if m, ok := err.(*MountError); ok { //nolint:errorlint // the tree is walked by hand
			out = append(out, m)
			return
		}
		switch u := err.(type) { //nolint:errorlint // as above
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				walk(e)
			}
		case interface{ Unwrap() error }:
			if e := u.Unwrap(); e != nil {
				walk(e)
			}
		}
	}
	if err != nil {
		walk(err)
	}
	return out
}
