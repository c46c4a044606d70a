package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/kubectl/pkg/util/term"
)

// attach waits until the container runs and connects the terminal to it. When
// it has ended already, its log is shown instead.
func (w *wanted) attach(ctx context.Context, config *restclient.Config, c kubernetes.Interface, namespace string, in io.Reader, out, errOut io.Writer) error {
	pod, err := w.await(ctx, c, namespace)
	if err != nil {
		return err
	}
	if ended(pod) {
		return logs(ctx, c, pod, out)
	}
	if !w.tty {
		fmt.Fprintln(errOut, "If you don't see a command prompt, try pressing enter.")
	}
	request := c.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: pod.Spec.Containers[0].Name, Stdin: true, Stdout: true, Stderr: !w.tty, TTY: w.tty}, scheme.ParameterCodec)
	executor, err := executorFor(config, request.URL())
	if err != nil {
		return err
	}
	t := term.TTY{In: in, Out: out, Raw: w.tty}
	options := remotecommand.StreamOptions{Stdin: in, Stdout: out, Tty: w.tty}
	if !w.tty {
		options.Stderr = errOut
	} else if t.IsTerminalIn() {
		options.TerminalSizeQueue = sizes{t.MonitorSize(t.GetSize())}
	}
	return t.Safe(func() error { return executor.StreamWithContext(ctx, options) })
}

// executorFor speaks WebSocket, or SPDY where that is refused.
func executorFor(config *restclient.Config, u *url.URL) (remotecommand.Executor, error) {
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", u)
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(config, "GET", u.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// await watches until the workload's pod runs or has ended.
func (w *wanted) await(ctx context.Context, c kubernetes.Interface, namespace string) (*corev1.Pod, error) {
	watch, err := c.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(w.selector()).String()})
	if err != nil {
		return nil, err
	}
	defer watch.Stop()
	for e := range watch.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok || e.Type == "DELETED" {
			continue
		}
		if pod.Status.Phase == corev1.PodRunning || ended(pod) {
			return pod, nil
		}
	}
	return nil, errors.Join(errors.New("the pod did not start"), ctx.Err())
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func logs(ctx context.Context, c kubernetes.Interface, p *corev1.Pod, out io.Writer) error {
	stream, err := c.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{}).Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	_, err = io.Copy(out, stream)
	return err
}

// sizes passes a terminal's sizes on in the type that the executor wants.
type sizes struct{ term.TerminalSizeQueue }

var _ remotecommand.TerminalSizeQueue = sizes{}

// Next returns the next size, nil at the end.
func (s sizes) Next() *remotecommand.TerminalSize {
	size := s.TerminalSizeQueue.Next()
	if size == nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: size.Width, Height: size.Height}
}
