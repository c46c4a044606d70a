package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/periplus/periplus/base/pki"
)

// Where things are on a machine.
const (
	configDir  = "/etc/periplus"
	configFile = configDir + "/config.yaml"
	tokenFile  = configDir + "/token"
	recordFile = configDir + "/install.json"
	dropInDir  = configDir + "/manifests"
	unitFile   = "/etc/systemd/system/periplus.service"
	unitName   = "periplus.service"
	defaultBin = "/usr/local/bin"
)

// A record says what an installation has made.
type record struct {
	Role string `json:"role"`
	// Files are paths on the machine, without the root.
	Files []string `json:"files"`
	// Links are symbolic links, and where they lead.
	Links map[string]string `json:"links,omitempty"`
}

// A machine is where the files go: all below a root.
type machine struct{ root string }

// at is where a path of the machine is now.
func (m machine) at(path string) string { return filepath.Join(m.root, path) }

// staged reports that the files are for another time or machine.
func (m machine) staged() bool { return m.root != "" && m.root != "/" }

// write replaces a file if its content or mode differ.
func (m machine) write(path string, data []byte, mode os.FileMode) (changed bool, err error) {
	to := m.at(path)
	have, err := os.ReadFile(to)
	if err == nil && string(have) == string(data) {
		info, err := os.Stat(to)
		if err == nil && info.Mode().Perm() == mode {
			return false, nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // as such directories are
		return false, err
	}
	return true, pki.WriteFile(to, data, mode)
}

// record reads what was installed; nil if nothing was.
func (m machine) record() (*record, error) {
	data, err := os.ReadFile(m.at(recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", m.at(recordFile), err)
	}
	return &r, nil
}

func (m machine) save(r *record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = m.write(recordFile, append(data, '\n'), 0o644)
	return err
}
