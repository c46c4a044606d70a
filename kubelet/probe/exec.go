package probe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/env"
)

// exec succeeds when the command ends with status 0 in time.
func (p *Prober) exec(ctx context.Context, c *container, action *corev1.ExecAction, limit time.Duration) (Result, string, error) {
	if p.config.Exec == nil {
		return Unknown, "", errors.New("this prober cannot run commands in containers")
	}
	command := expand(action.Command, c.spec.Env)
	response, err := p.config.Exec.ExecSync(ctx, &runtimeapi.ExecSyncRequest{
		ContainerId: c.id,
		Cmd:         command,
		Timeout:     int64(limit / time.Second),
	})
	if err != nil {
		if ctx.Err() == nil && (status.Code(err) == codes.DeadlineExceeded || errors.Is(err, context.DeadlineExceeded)) {
			return Failure, fmt.Sprintf("command timed out: %q timed out after %v", strings.Join(command, " "), limit), nil
		}
		return Unknown, "", err
	}
	output := clip(append(append([]byte(nil), response.Stdout...), response.Stderr...))
	if response.ExitCode != 0 {
		return Failure, output, nil
	}
	return Success, output, nil
}

// expand replaces $(NAME) by the literal values of the container's environment;
// $$(NAME) stands for $(NAME), an unknown name stays as it is.
func expand(command []string, vars []corev1.EnvVar) []string {
	out := make([]string, len(command))
	for i, arg := range command {
		out[i] = env.Expand(arg, func(name string) (value string, ok bool) {
			for i := range vars {
				if vars[i].Name == name {
					value, ok = vars[i].Value, true // the last one counts
				}
			}
			return value, ok
		})
	}
	return out
}
