package image

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	images "github.com/periplus/periplus/containers/image"
	"github.com/periplus/periplus/containers/image/admin"
)

// DefaultEndpoint is the embedded runtime's socket.
const DefaultEndpoint = "unix:///run/periplus/cri.sock"

// maxMessage bounds what the runtime answers, as crictl does.
const maxMessage = 16 << 20

// New makes the verb.
func New() *cobra.Command {
	t := &target{}
	cmd := &cobra.Command{
		Use:     "image",
		Aliases: []string{"images"},
		Short:   "Show and change the images of this node",
		Long: "Show and change the images of this node.\n\n" +
			"The commands speak to the container runtime of the machine on which they run.",
		SilenceUsage: true,
	}
	cmd.PersistentFlags().StringVar(&t.endpoint, "runtime-endpoint", DefaultEndpoint, "socket of the container runtime")
	cmd.PersistentFlags().StringVar(&t.admin, "image-endpoint", "",
		"socket for import and export (default: "+admin.SocketName+" beside the runtime's)")
	cmd.AddCommand(list(t), pull(t), remove(t), inspect(t), importArchive(t), exportArchive(t))
	return cmd
}

// target is the runtime that is spoken to.
type target struct {
	endpoint string
	admin    string
}

// socket is the path of the runtime's socket.
func (t *target) socket() (string, error) {
	path := strings.TrimPrefix(t.endpoint, "unix://")
	if !filepath.IsAbs(path) {
		return "", fmt.Errorf("--runtime-endpoint %q must be an absolute path or unix:///path", t.endpoint)
	}
	return path, nil
}

// cri connects to the runtime's image service.
func (t *target) cri() (client runtimeapi.ImageServiceClient, done func(), err error) {
	path, err := t.socket()
	if err != nil {
		return nil, nil, err
	}
	probe, err := (&net.Dialer{}).DialContext(context.Background(), "unix", path) // the reason of a failure is plain here, and lost in gRPC
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, nil, fmt.Errorf("cannot reach the container runtime at %s: %w (is peri running? --runtime-endpoint names another socket)", path, err)
	}
	probe.Close()
	conn, err := grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, nil, err
	}
	return runtimeapi.NewImageServiceClient(conn), func() { conn.Close() }, nil
}

// archives is the client for import and export.
func (t *target) archives() (*admin.Client, error) {
	if t.admin != "" {
		return admin.NewClient(strings.TrimPrefix(t.admin, "unix://")), nil
	}
	path, err := t.socket()
	if err != nil {
		return nil, err
	}
	return admin.NewClient(filepath.Join(filepath.Dir(path), admin.SocketName)), nil
}

// plain is an error of the runtime without gRPC's frame.
func plain(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return errors.New(s.Message())
	}
	return err
}

// checkName says what is wrong with a name before it is sent. IDs are no names.
func checkName(name string) error {
	if _, err := images.ParseReference(name); err != nil {
		return fmt.Errorf("invalid image name %q: %w", name, err)
	}
	return nil
}

// isID reports an image ID or the beginning of one.
func isID(s string) bool {
	return strings.HasPrefix(s, "sha256:") || len(s) >= 4 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}
