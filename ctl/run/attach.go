package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/util/term"
	"k8s.io/streaming/pkg/httpstream"
)

// attach waits until the container runs and connects the terminal to it. When
// it has ended already, its log is shown instead. A Pod's or Job's exit code
// becomes the command's.
func (w *wanted) attach(ctx context.Context, config *restclient.Config, c kubernetes.Interface, namespace string, in io.Reader, out, errOut io.Writer) (err error) {
	// client-go logs what it meets while it ends streams; it is not for the user.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	defer func() {
		if ctx.Err() != nil {
			err = errors.New("interrupted")
		}
	}()
	pod, err := w.started(ctx, c, namespace)
	if err != nil {
		return err
	}
	switch {
	case ended(pod):
		err = logs(ctx, c, pod, out)
	default:
		if err = w.connect(ctx, config, c, pod, in, out, errOut); err != nil && ctx.Err() == nil {
			// The container may have ended before the connection was there.
			fmt.Fprintf(errOut, "warning: couldn't attach to pod/%s, falling back to streaming logs: %v\n", pod.Name, err)
			err = logs(ctx, c, pod, out)
		}
	}
	if err != nil || w.restart == string(corev1.RestartPolicyAlways) {
		return err
	}
	if pod, err = await(ctx, c, namespace, "metadata.name="+pod.Name, "", ended); err != nil {
		return err
	}
	return exitError(pod)
}

func (w *wanted) connect(ctx context.Context, config *restclient.Config, c kubernetes.Interface, pod *corev1.Pod, in io.Reader, out, errOut io.Writer) error {
	t := term.TTY{In: in, Out: out, Raw: w.tty}
	if !w.quiet {
		if w.tty && !t.IsTerminalIn() {
			fmt.Fprintln(errOut, "Unable to use a TTY - input is not a terminal or the right kind of file")
		}
		fmt.Fprintln(errOut, "If you don't see a command prompt, try pressing enter.")
	}
	request := c.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("attach").
		VersionedParams(&corev1.PodAttachOptions{Container: pod.Spec.Containers[0].Name, Stdin: true, Stdout: true, Stderr: !w.tty, TTY: w.tty}, scheme.ParameterCodec)
	executor, err := executorFor(config, request.URL())
	if err != nil {
		return err
	}
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

// started waits until the workload's pod runs or has ended.
func (w *wanted) started(ctx context.Context, c kubernetes.Interface, namespace string) (*corev1.Pod, error) {
	limited, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	pod, err := await(limited, c, namespace, "", labels.SelectorFromSet(w.selector()).String(), func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodRunning || ended(p)
	})
	if err == nil || ctx.Err() != nil {
		return pod, err
	}
	if pod == nil {
		return nil, fmt.Errorf("no pod was made within %s: %w", w.patience, err)
	}
	return nil, fmt.Errorf("pod %s did not run within %s%s", pod.Name, w.patience, obstacle(pod))
}

// obstacle says what keeps a pod from running.
func obstacle(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return ": " + c.Reason + ": " + c.Message
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if wait := c.State.Waiting; wait != nil && wait.Reason != "" {
			if wait.Message == "" {
				return ": " + wait.Reason
			}
			return ": " + wait.Reason + ": " + wait.Message
		}
	}
	return ""
}

// await watches until done says so of a pod. When the watch ends first, the pod
// as it was last seen comes with the error.
func await(ctx context.Context, c kubernetes.Interface, namespace, field, label string, done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	watch, err := c.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: field, LabelSelector: label})
	if err != nil {
		return nil, err
	}
	defer watch.Stop()
	var last *corev1.Pod
	for e := range watch.ResultChan() {
		pod, ok := e.Object.(*corev1.Pod)
		switch {
		case !ok:
		case e.Type == "DELETED" && field != "":
			return pod, fmt.Errorf("pod %s was deleted", pod.Name)
		case e.Type == "DELETED":
		case done(pod):
			return pod, nil
		default:
			last = pod
		}
	}
	return last, errors.Join(errors.New("the watch on the pod ended"), ctx.Err())
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// exitError is nil for a pod that succeeded, else it carries the exit code.
func exitError(p *corev1.Pod) error {
	if p.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	if len(p.Status.ContainerStatuses) == 0 || p.Status.ContainerStatuses[0].State.Terminated == nil {
		return fmt.Errorf("pod %s/%s failed with unknown exit code", p.Namespace, p.Name)
	}
	t := p.Status.ContainerStatuses[0].State.Terminated
	return exec.CodeExitError{Err: errors.New(strings.TrimSpace(fmt.Sprintf("pod %s/%s terminated (%s)\n%s", p.Namespace, p.Name, t.Reason, t.Message))), Code: int(t.ExitCode)}
}

// logs follows the pod's log until its container ends.
func logs(ctx context.Context, c kubernetes.Interface, p *corev1.Pod, out io.Writer) error {
	stream, err := c.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Follow: true}).Stream(ctx)
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
