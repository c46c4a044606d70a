package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
)

// socket is the first descriptor after the standard streams and the directory.
const socket = 4

func main() {
	if len(os.Args) > 1 {
		show()
		return
	}
	fmt.Fprintln(os.Stderr, serve())
	os.Exit(1)
}

func show() {
	data, err := os.ReadFile("/data/file")
	fmt.Println("arguments:", strings.Join(os.Args[1:], " "), "variable:", os.Getenv("NAME"), "file:", strings.TrimSpace(string(data)), err)
}

// serve returns what went wrong; it does not end otherwise.
func serve() error {
	if err := syscall.SetNonblock(socket, true); err != nil {
		return fmt.Errorf("no socket: %w", err)
	}
	l, err := net.FileListener(os.NewFile(socket, "socket"))
	if err != nil {
		return err
	}
	fmt.Println("serving")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 19\r\n\r\nhello from a module")
		_ = c.Close()
	}
}
