package ca

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pb "istio.io/api/security/v1alpha1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/mesh"
)

// maxRequest bounds a certificate request: one with a key of 16384 bits fits.
const maxRequest = 16 << 10

// A Service answers CreateCertificate (istio.v1.auth.IstioCertificateService).
type Service struct {
	pb.UnimplementedIstioCertificateServiceServer
	authority *Authority
	callers   mesh.Authenticator
	log       *slog.Logger

	// Signed, if not nil, is told of each certificate that was signed, since when its
	// request was there. Set it before the service is used.
	Signed func(caller mesh.Caller, start time.Time)
}

// NewService returns the service.
func NewService(a *Authority, callers mesh.Authenticator, log *slog.Logger) *Service {
	return &Service{authority: a, callers: callers, log: log}
}

// Register adds the service to a gRPC server.
func (s *Service) Register(r grpc.ServiceRegistrar) { pb.RegisterIstioCertificateServiceServer(r, s) }

// CreateCertificate signs the public key of the request for the caller.
func (s *Service) CreateCertificate(ctx context.Context, r *pb.IstioCertificateRequest) (*pb.IstioCertificateResponse, error) {
	start := time.Now()
	caller, err := s.callers.Authenticate(ctx)
	switch {
	case errors.Is(err, mesh.ErrUnauthenticated):
		return nil, status.Error(codes.Unauthenticated, err.Error())
	case err != nil:
		s.log.Warn("a workload's token could not be reviewed", base.KeyError, err)
		return nil, status.Error(codes.Unavailable, err.Error())
	case len(r.GetCsr()) > maxRequest:
		return nil, status.Errorf(codes.InvalidArgument, "certificate request of %d bytes: at most %d are allowed", len(r.GetCsr()), maxRequest)
	}
	chain, err := s.authority.Sign([]byte(r.GetCsr()), caller.Identity, time.Duration(r.GetValidityDuration())*time.Second)
	switch {
	case errors.Is(err, ErrRequest):
		return nil, status.Error(codes.InvalidArgument, err.Error())
	case err != nil:
		return nil, status.Error(codes.Internal, err.Error())
	}
	if s.Signed != nil {
		s.Signed(caller, start)
	}
	s.log.Debug("certificate signed", base.KeyUser, caller.Identity.String(), base.KeyPod, caller.Namespace+"/"+caller.Pod)
	return &pb.IstioCertificateResponse{CertChain: chain}, nil
}
