package sanity

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"google.golang.org/grpc"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/local"
)

// TestSanity: CSI_ENDPOINT names the socket of another driver to test instead.
func TestSanity(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: attaches loop devices and mounts")
	}
	dir := t.TempDir()
	c := sanity.NewTestConfig()
	c.Address = os.Getenv("CSI_ENDPOINT")
	if c.Address == "" {
		c.Address = filepath.Join(dir, "csi.sock")
		serve(t, filepath.Join(dir, "state"), c.Address)
	}
	c.TargetPath, c.StagingPath = filepath.Join(dir, "target"), filepath.Join(dir, "staging")
	c.TestVolumeSize, c.TestVolumeExpandSize = 32<<20, 48<<20
	c.TestVolumeAccessType = "mount"
	sanity.Test(t, c)
}

func serve(t *testing.T, state, socket string) {
	driver, err := local.Open(local.Config{Dir: state, Node: "node"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	csi.Register(s, driver)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
