package image

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pull is "pull".
func pull(t *target) *cobra.Command {
	var user string
	var passwordStdin bool
	cmd := &cobra.Command{
		Use:   "pull NAME…",
		Short: "Fetch images from their registries",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args { // all of them, before anything is sent
				if err := checkName(name); err != nil {
					return err
				}
			}
			auth, err := credentials(cmd.InOrStdin(), user, passwordStdin)
			if err != nil {
				return err
			}
			client, done, err := t.cri()
			if err != nil {
				return err
			}
			defer done()
			for _, name := range args {
				req := &runtimeapi.PullImageRequest{Image: &runtimeapi.ImageSpec{Image: name}, Auth: auth}
				resp, err := client.PullImage(cmd.Context(), req)
				if err != nil {
					return plain(err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", name, resp.ImageRef)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&user, "username", "u", "", "user name for the registry")
	cmd.Flags().BoolVar(&passwordStdin, "password-stdin", false, "read the password from standard input")
	return cmd
}

// credentials reads the password where no other process sees it.
func credentials(in io.Reader, user string, stdin bool) (*runtimeapi.AuthConfig, error) {
	switch {
	case user == "" && !stdin:
		return nil, nil
	case user == "":
		return nil, errors.New("--password-stdin needs --username")
	case !stdin:
		return nil, errors.New("--username needs --password-stdin")
	}
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("read the password: %w", err)
	}
	if line = strings.TrimRight(line, "\r\n"); line == "" {
		return nil, errors.New("the password on standard input is empty")
	}
	return &runtimeapi.AuthConfig{Username: user, Password: line}, nil
}

// remove is "rm".
func remove(t *target) *cobra.Command {
	return &cobra.Command{
		Use:   "rm NAME|ID…",
		Short: "Remove images, each with all its names",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, done, err := t.cri()
			if err != nil {
				return err
			}
			defer done()
			var failed []error
			for _, name := range args {
				spec := &runtimeapi.ImageSpec{Image: name}
				status, err := client.ImageStatus(cmd.Context(), &runtimeapi.ImageStatusRequest{Image: spec})
				switch {
				case err != nil:
					err = plain(err)
				case status.Image == nil:
					err = notFound(name)
				default:
					spec = &runtimeapi.ImageSpec{Image: status.Image.Id}
					_, err = client.RemoveImage(cmd.Context(), &runtimeapi.RemoveImageRequest{Image: spec})
					err = plain(err)
				}
				if err != nil {
					failed = append(failed, err)
					continue
				}
				for _, n := range append(status.Image.RepoTags, status.Image.Id) {
					fmt.Fprintln(cmd.OutOrStdout(), "removed", n)
				}
			}
			return errors.Join(failed...)
		},
	}
}
