package image

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/containers/image/registry"
	"github.com/periplus/periplus/cri"
)

var _ cri.Images = (*Store)(nil)

// ListImages lists all images, or the one that the filter names.
func (s *Store) ListImages(_ context.Context, req *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	resp := &runtimeapi.ListImagesResponse{}
	if ref := req.GetFilter().GetImage().GetImage(); ref != "" {
		if img, err := s.Get(ref); err == nil {
			resp.Images = append(resp.Images, criImage(img))
		}
		return resp, nil
	}
	for _, img := range s.List() {
		resp.Images = append(resp.Images, criImage(img))
	}
	return resp, nil
}

// ImageStatus describes an image; one that is not there has no description.
func (s *Store) ImageStatus(_ context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	img, err := s.Get(req.GetImage().GetImage())
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrInvalidReference) {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	if err != nil {
		return nil, statusError(err)
	}
	resp := &runtimeapi.ImageStatusResponse{Image: criImage(img)}
	if req.GetVerbose() {
		info, err := json.Marshal(map[string]any{"chainID": img.ChainID, "imageSpec": img.Config, "manifest": img.Manifest})
		if err != nil {
			return nil, err
		}
		resp.Info = map[string]string{"info": string(info)}
	}
	return resp, nil
}

// PullImage pulls an image and returns its ID.
func (s *Store) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	auth, err := criAuth(req.GetAuth())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	img, err := s.Pull(ctx, req.GetImage().GetImage(), PullOptions{Auth: auth})
	if err != nil {
		return nil, statusError(err)
	}
	return &runtimeapi.PullImageResponse{ImageRef: img.ID}, nil
}

// RemoveImage removes an image with all its names. It is no error if there is none.
func (s *Store) RemoveImage(ctx context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	img, err := s.Get(req.GetImage().GetImage())
	if err == nil {
		err = s.Remove(ctx, img.ID)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, statusError(err)
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo says what blobs and unpacked layers occupy. Both are on one file system.
func (s *Store) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	bytes, files := s.Usage()
	layerBytes, inodes := s.layers.LayersUsage()
	usage := &runtimeapi.FilesystemUsage{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: s.layers.Root()},
		UsedBytes:  &runtimeapi.UInt64Value{Value: uint64(bytes + layerBytes)},
		InodesUsed: &runtimeapi.UInt64Value{Value: uint64(files + inodes)},
	}
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems:     []*runtimeapi.FilesystemUsage{usage},
		ContainerFilesystems: []*runtimeapi.FilesystemUsage{usage},
	}, nil
}

// criImage is an image in the words of the CRI.
func criImage(img *Image) *runtimeapi.Image {
	out := &runtimeapi.Image{
		Id: img.ID, RepoTags: img.RepoTags, RepoDigests: img.RepoDigests, Size: uint64(img.Size), Pinned: img.Pinned,
	}
	user, _, _ := strings.Cut(img.Config.Config.User, ":")
	switch uid, err := strconv.ParseInt(user, 10, 64); {
	case user == "":
		// neither: that is root
	case err == nil:
		out.Uid = &runtimeapi.Int64Value{Value: uid}
	default:
		out.Username = user
	}
	return out
}

// criAuth reads the credentials of a request, nil for none.
func criAuth(a *runtimeapi.AuthConfig) (*Auth, error) {
	if a == nil {
		return nil, nil
	}
	out := &Auth{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}
	if a.Auth != "" && out.Username == "" {
		raw, err := base64.StdEncoding.DecodeString(a.Auth)
		if err != nil {
			return nil, errors.New("the auth field of the credentials is not base64")
		}
		user, password, ok := strings.Cut(string(raw), ":")
		if !ok {
			return nil, errors.New("the auth field of the credentials is not name:password")
		}
		out.Username, out.Password = user, strings.Trim(password, "\x00")
	}
	if *out == (Auth{}) {
		return nil, nil
	}
	return out, nil
}

// statusError gives an error the code by which gRPC clients, and the kubelet, tell it.
func statusError(err error) error {
	code := codes.Unknown
	switch {
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, ErrInvalidReference):
		code = codes.InvalidArgument
	case errors.Is(err, ErrNotFound), errors.Is(err, registry.ErrNotFound):
		code = codes.NotFound
	case errors.Is(err, ErrPinned):
		code = codes.FailedPrecondition
	case errors.Is(err, registry.ErrDenied):
		code = codes.PermissionDenied
	}
	return status.Error(code, fmt.Sprint(err))
}
