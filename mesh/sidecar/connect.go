package sidecar

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
)

// connect prepares the connection to the control plane; it is made when it is used.
// Root certificate and token are read again for each connection and call.
func connect(c *Config) (*grpc.ClientConn, error) {
	secure := &tls.Config{
		ServerName: c.ServerName, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		InsecureSkipVerify: true, //nolint:gosec // verified below, with the root certificate of that moment
		VerifyConnection: func(s tls.ConnectionState) error {
			pem, err := os.ReadFile(c.RootFile)
			if err != nil {
				return err
			}
			roots := x509.NewCertPool()
			if !roots.AppendCertsFromPEM(pem) {
				return fmt.Errorf("%s has no certificate", c.RootFile)
			}
			options := x509.VerifyOptions{Roots: roots, DNSName: c.ServerName, Intermediates: x509.NewCertPool()}
			if len(s.PeerCertificates) == 0 {
				return errors.New("the control plane has no certificate")
			}
			for _, i := range s.PeerCertificates[1:] {
				options.Intermediates.AddCert(i)
			}
			_, err = s.PeerCertificates[0].Verify(options)
			return err
		},
	}
	return grpc.NewClient("passthrough:///"+c.ControlPlane,
		grpc.WithTransportCredentials(credentials.NewTLS(secure)),
		grpc.WithPerRPCCredentials(token{c.TokenFile}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 30 * time.Second}, MinConnectTimeout: 5 * time.Second}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 60 * time.Second, Timeout: 10 * time.Second}),
		grpc.WithInitialWindowSize(256<<10), grpc.WithInitialConnWindowSize(256<<10),
		grpc.WithReadBufferSize(8<<10), grpc.WithWriteBufferSize(4<<10),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)),
		grpc.WithDisableServiceConfig(),
	)
}

// token sends the bearer token in a file, which the kubelet renews.
type token struct{ file string }

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	b, err := os.ReadFile(t.file)
	if err != nil {
		return nil, fmt.Errorf("token of the service account: %w", err)
	}
	return map[string]string{"authorization": "Bearer " + strings.TrimSpace(string(b))}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (token) RequireTransportSecurity() bool { return true }
