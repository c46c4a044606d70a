package devices

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// checkpointName is upstream's; the content is ours.
const checkpointName = "kubelet_internal_checkpoint"

func (r *Registry) load() error {
	b, err := os.ReadFile(filepath.Join(r.cfg.Dir, checkpointName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var list []*Allocation
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("%s: %w", checkpointName, err)
	}
	for _, a := range list {
		r.given[key(a.Pod, a.Container, a.Resource)] = a
	}
	return nil
}

// save writes the file anew: it is whole or not there.
func (r *Registry) save() error {
	b, err := json.Marshal(r.All())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.cfg.Dir, 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(r.cfg.Dir, ".checkpoint-*")
	if err != nil {
		return fmt.Errorf("keep devices: %w", err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // gone after the rename
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("keep devices: %w", err)
	}
	return os.Rename(f.Name(), filepath.Join(r.cfg.Dir, checkpointName))
}
