package pressure_test

import (
	"path/filepath"
	"testing"

	"github.com/periplus/periplus/linux/pressure"
)

func TestFilesystemOfAPathThatDoesNotExist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	have, err := pressure.ReadFilesystem(dir)
	if err != nil {
		t.Fatal(err)
	}
	if have.Capacity == 0 || have.Available > have.Capacity || have.Used > have.Capacity {
		t.Errorf("%+v", have)
	}
	below, err := pressure.ReadFilesystem(filepath.Join(dir, "not", "there"))
	if err != nil || below.Device != have.Device {
		t.Errorf("device %d, %v; want %d", below.Device, err, have.Device)
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	running, most, err := pressure.Processes()
	if err != nil || running < 1 || most <= running {
		t.Errorf("%d of %d, %v", running, most, err)
	}
}
