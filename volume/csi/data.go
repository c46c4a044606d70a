package csi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

const (
	dataFile = "vol_data.json"
	mountDir = "mount"
	// device is a file, on which the block device is mounted.
	device      = "device"
	globalMount = "globalmount"
)

// data is what vol_data.json holds, with upstream's names.
type data struct {
	Volume     string `json:"specVolID"`
	Handle     string `json:"volumeHandle"`
	Driver     string `json:"driverName"`
	Node       string `json:"nodeName"`
	Attachment string `json:"attachmentID,omitempty"`
	Lifecycle  string `json:"volumeLifecycleMode"`
	Block      bool   `json:"block,omitempty"`
	// Ready says that nothing is left to do: mounted, grown, and given to its group.
	Ready bool `json:"ready,omitempty"`
}

const (
	persistent = "Persistent"
	inline     = "Ephemeral"
)

// readData returns nil if there is none.
func readData(dir string) (*data, error) {
	b, err := os.ReadFile(filepath.Join(dir, dataFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d := &data{}
	if err := json.Unmarshal(b, d); err != nil {
		return nil, nil //nolint:nilerr // a crash before anything was mounted
	}
	return d, nil
}

// writeData is durable before anything is mounted.
func writeData(dir string, d *data) error {
	if have, err := readData(dir); err == nil && have != nil && *have == *d {
		return nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	tmp := filepath.Join(dir, dataFile+".tmp")
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, dataFile))
}

// target is where the volume is published in its directory.
func (d *data) target(dir string) string {
	if d.Block {
		return filepath.Join(dir, device)
	}
	return filepath.Join(dir, mountDir)
}

func (p *Plugin) stagingDir(driver, handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return filepath.Join(p.config.Root, "plugins", "kubernetes.io", "csi", driver, hex.EncodeToString(sum[:]))
}

// published lists the directories of pods in which the volume is published.
func (p *Plugin) published(driver, handle string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(p.config.Root, "pods", "*", "volumes", "kubernetes.io~csi", "*", dataFile))
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, f := range files {
		d, err := readData(filepath.Dir(f))
		if err != nil {
			return nil, err
		}
		if d != nil && d.Driver == driver && d.Handle == handle && d.Lifecycle == persistent {
			dirs = append(dirs, filepath.Dir(f))
		}
	}
	return dirs, nil
}

// Staged says where a volume is mounted: its staging path and the path of one
// pod; "" if it is not.
func (p *Plugin) Staged(driver, handle string) (staging, published string) {
	dirs, err := p.published(driver, handle)
	if err != nil || len(dirs) == 0 {
		return "", ""
	}
	d, err := readData(dirs[0])
	if err != nil || d == nil {
		return "", ""
	}
	return filepath.Join(p.stagingDir(driver, handle), globalMount), d.target(dirs[0])
}

func (p *Plugin) changed() {
	if p.config.Changed != nil {
		p.config.Changed()
	}
}

// InUse lists the attached volumes that are or may be mounted on this node, for the
// node's status: the attach controller leaves them alone.
func (p *Plugin) InUse() []corev1.UniqueVolumeName {
	var names []corev1.UniqueVolumeName
	for _, pattern := range []string{
		filepath.Join(p.config.Root, "plugins", "kubernetes.io", "csi", "*", "*", dataFile),
		filepath.Join(p.config.Root, "pods", "*", "volumes", "kubernetes.io~csi", "*", dataFile),
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		for _, f := range files {
			d, err := readData(filepath.Dir(f))
			if err != nil || d == nil || d.Attachment == "" {
				continue
			}
			names = append(names, corev1.UniqueVolumeName("kubernetes.io/csi/"+d.Driver+"^"+d.Handle))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
