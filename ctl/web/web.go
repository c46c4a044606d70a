package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
)

// New returns the command.
func New() *cobra.Command {
	port := 8080
	text := ""
	status := http.StatusOK
	cmd := &cobra.Command{
		Use:   "web",
		Short: "a small web server that says who answered, for trying a cluster out",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 1 || port > 65535 {
				return fmt.Errorf("--port: %d is not allowed: must be between 1 and 65535", port)
			}
			if status < 200 || status > 599 {
				return fmt.Errorf("--status: %d is not allowed: must be between 200 and 599", status)
			}
			return serve(cmd.Context(), port, status, text, cmd)
		},
	}
	cmd.Flags().IntVar(&port, "port", port, "port to listen on")
	cmd.Flags().IntVar(&status, "status", status, "answer with this status")
	cmd.Flags().StringVar(&text, "text", "", "answer this text instead")
	return cmd
}

// serve answers until ctx ends. /healthz is for probes, /exit?code=N ends the
// process, /headers shows the request as it arrived.
func serve(ctx context.Context, port, status int, text string, cmd *cobra.Command) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	var served atomic.Int64
	exit := make(chan int, 1)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		n := served.Add(1)
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s from %s\n", time.Now().UTC().Format(time.RFC3339), r.Method, r.URL.Path, r.RemoteAddr)
		if status != http.StatusOK {
			w.WriteHeader(status)
		}
		if text != "" {
			fmt.Fprintln(w, text)
			return
		}
		fmt.Fprintf(w, "Hello from %s: answer %d to %s %s%s\n", host, n, r.Method, r.Host, r.URL.Path)
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		names := make([]string, 0, len(r.Header))
		for name := range r.Header {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(w, "%s: %v\n", name, r.Header[name])
		}
	})
	mux.HandleFunc("/exit", func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Query().Get("code"))
		fmt.Fprintln(w, "bye")
		select {
		case exit <- code:
		default:
		}
	})
	s := &http.Server{Addr: net.JoinHostPort("", strconv.Itoa(port)), Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		code := -1
		select {
		case <-ctx.Done():
		case code = <-exit:
		}
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(limited) // what is left after the limit is cut off
		if code >= 0 {
			os.Exit(code)
		}
	}()
	fmt.Fprintf(cmd.OutOrStdout(), "listening on port %d\n", port)
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-stopped
	return nil
}
