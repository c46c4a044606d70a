package containers_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

// executor connects as the kubelet does. (What comes over WebSocket from newer
// clients is turned into SPDY before it gets here.)
func executor(t *testing.T, rawURL string) remotecommand.Executor {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	s, err := remotecommand.NewSPDYExecutor(&rest.Config{}, http.MethodPost, u)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	if v, ok := <-s; ok {
		return &v
	}
	return nil
}

func TestExecStream(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	id := n.run(n.pod(podConfig(n, "exec")), containerConfig("app", []string{"sleep", "1000"}))
	resp, err := n.Exec(n.ctx(), &runtimeapi.ExecRequest{ContainerId: id, Cmd: sh("cat; echo err >&2; exit 4"), Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("0123456789", 100_000)
	var out, errs bytes.Buffer
	err = executor(t, resp.Url).StreamWithContext(n.ctx(), remotecommand.StreamOptions{
		Stdin: strings.NewReader(big), Stdout: &out, Stderr: &errs,
	})
	var code utilexec.ExitError
	if !errors.As(err, &code) || code.ExitStatus() != 4 {
		t.Errorf("%v, want exit code 4", err)
	}
	if out.String() != big || errs.String() != "err\n" {
		t.Errorf("%d bytes of output, stderr %q", out.Len(), errs.String())
	}

	resp, err = n.Exec(n.ctx(), &runtimeapi.ExecRequest{ContainerId: id, Cmd: sh("read line; stty size; echo got $line $TERM"), Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatal(err)
	}
	size := make(sizes, 1)
	size <- remotecommand.TerminalSize{Width: 120, Height: 40}
	pr, pw := io.Pipe()
	var tty bytes.Buffer
	done := make(chan error, 1)
	go func() {
		done <- executor(t, resp.Url).StreamWithContext(n.ctx(), remotecommand.StreamOptions{
			Stdin: pr, Stdout: &tty, Tty: true, TerminalSizeQueue: size,
		})
	}()
	go func() { _, _ = io.WriteString(pw, "hello\n") }()
	if err := <-done; err != nil {
		t.Errorf("tty: %v", err)
	}
	close(size)
	pw.Close()
	if got := tty.String(); !strings.Contains(got, "got hello xterm\r\n") {
		t.Errorf("tty output %q", got)
	}

	// WebSockets, with the older protocols and the one that can say that input has ended.
	for protocol, script := range map[string]string{"v4.channel.k8s.io": "echo hi", "v5.channel.k8s.io": "cat; exit 5"} {
		stdin := strings.HasPrefix(protocol, "v5")
		resp, err = n.Exec(n.ctx(), &runtimeapi.ExecRequest{ContainerId: id, Cmd: sh(script), Stdin: stdin, Stdout: true})
		if err != nil {
			t.Fatal(err)
		}
		w, err := remotecommand.NewWebSocketExecutorForProtocols(&rest.Config{}, http.MethodGet, resp.Url, protocol)
		if err != nil {
			t.Fatal(err)
		}
		out.Reset()
		o := remotecommand.StreamOptions{Stdout: &out}
		if stdin {
			o.Stdin = strings.NewReader("hi\n")
		}
		err = w.StreamWithContext(n.ctx(), o)
		if out.String() != "hi\n" || stdin != (errors.As(err, &code) && code.ExitStatus() == 5) || !stdin && err != nil {
			t.Errorf("%s: %q, %v", protocol, out.String(), err)
		}
		code = nil
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "attach"))
	// StdinOnce: the container's input ends with the client's.
	id := n.run(pod, containerConfig("once", []string{"cat"}, func(c *runtimeapi.ContainerConfig) { c.Stdin, c.StdinOnce = true, true }))
	resp, err := n.Attach(n.ctx(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	err = executor(t, resp.Url).StreamWithContext(n.ctx(), remotecommand.StreamOptions{
		Stdin: strings.NewReader("one\ntwo\n"), Stdout: &out, Stderr: &errs,
	})
	if err != nil || out.String() != "one\ntwo\n" {
		t.Errorf("attach: %q, %v", out.String(), err)
	}
	if st := n.ended(id); st.ExitCode != 0 {
		t.Errorf("ended with %v", st)
	}
	if out, _ := readLog(t, n.status(id).LogPath); out != "one\ntwo\n" {
		t.Errorf("log: %q", out)
	}

	// A terminal: one stream, input echoed.
	id = n.run(pod, containerConfig("tty", sh("read x; echo got $x; exit 3"), func(c *runtimeapi.ContainerConfig) { c.Stdin, c.Tty = true, true }))
	resp, err = n.Attach(n.ctx(), &runtimeapi.AttachRequest{ContainerId: id, Stdin: true, Stdout: true, Tty: true})
	if err != nil {
		t.Fatal(err)
	}
	pr, pw := io.Pipe()
	out.Reset()
	done := make(chan error, 1)
	go func() {
		done <- executor(t, resp.Url).StreamWithContext(n.ctx(), remotecommand.StreamOptions{Stdin: pr, Stdout: &out, Tty: true})
	}()
	go func() { _, _ = io.WriteString(pw, "hello\n") }()
	if err := <-done; err != nil {
		t.Errorf("attach: %v", err)
	}
	pw.Close()
	if !strings.Contains(out.String(), "got hello") {
		t.Errorf("attached output: %q", out.String())
	}
	if st := n.ended(id); st.ExitCode != 3 {
		t.Errorf("ended with %v", st)
	}
}

func TestPortForward(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	pod := n.pod(podConfig(n, "forward"))
	id := n.run(pod, containerConfig("server", sh("exec nc -ll -p 8080 -e echo answer")))
	// It listens some time after the start: ask from inside until it answers.
	n.exec(id, "until nc 127.0.0.1 8080 </dev/null | grep answer; do :; done")
	resp, err := n.PortForward(n.ctx(), &runtimeapi.PortForwardRequest{PodSandboxId: pod, Port: []int32{8080}})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(resp.Url)
	if err != nil {
		t.Fatal(err)
	}
	tr, up, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.ctx())
	defer cancel()
	ready, failed := make(chan struct{}), make(chan error, 1)
	f, err := portforward.NewOnAddresses(spdy.NewDialer(up, &http.Client{Transport: tr}, http.MethodPost, u),
		[]string{"127.0.0.1"}, []string{":8080"}, ctx.Done(), ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { failed <- f.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		t.Fatal(err)
	}
	ports, err := f.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	if got := dialRead(t, ports[0].Local); got != "answer\n" {
		t.Errorf("through the forwarded port: %q", got)
	}
	cancel()
	if err := <-failed; err != nil {
		t.Error(err)
	}
}
