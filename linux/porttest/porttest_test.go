package porttest_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/periplus/periplus/linux/porttest"
)

func TestClosed(t *testing.T) {
	t.Parallel()
	address := porttest.Closed(t)
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("Dial: %v", err)
	}
	if l, err := net.Listen("tcp", address); err == nil {
		t.Error("the port of a closed address can be listened on")
		_ = l.Close()
	}
}

func TestFree(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("127.0.0.1:%d", porttest.Free(t))
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}
