package kubelettest

import (
	"context"
	"maps"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cri"
)

// Images is an image store in memory.
type Images struct {
	cri.Images

	mu      sync.Mutex // guards the rest
	present map[string]bool
	remote  map[string]bool
	auths   []*runtimeapi.AuthConfig
	pulls   int
}

// NewImages returns a store that has the images named and can pull those added with Publish.
func NewImages(present ...string) *Images {
	i := &Images{present: map[string]bool{}, remote: map[string]bool{}}
	for _, name := range present {
		i.present[name] = true
	}
	return i
}

// Publish makes an image one that can be pulled.
func (i *Images) Publish(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.remote[name] = true
}

// Pulls returns how often a pull was tried and the credentials used.
func (i *Images) Pulls() (int, []*runtimeapi.AuthConfig) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pulls, i.auths
}

// ImageStatus implements cri.Images.
func (i *Images) ImageStatus(_ context.Context, req *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.present[req.Image.Image] {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: req.Image.Image, RepoTags: []string{req.Image.Image}, Size: 42}}, nil
}

// PullImage implements cri.Images.
func (i *Images) PullImage(_ context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pulls++
	i.auths = append(i.auths, req.Auth)
	name := req.Image.Image
	if !i.remote[name] {
		return nil, status.Errorf(codes.NotFound, "image %q not found", name)
	}
	i.present[name] = true
	return &runtimeapi.PullImageResponse{ImageRef: name}, nil
}

// ListImages implements cri.Images.
func (i *Images) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := &runtimeapi.ListImagesResponse{}
	for name := range i.present {
		out.Images = append(out.Images, &runtimeapi.Image{Id: name, RepoTags: []string{name}, Size: 42})
	}
	return out, nil
}

// RemoveImage implements cri.Images.
func (i *Images) RemoveImage(_ context.Context, req *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.present, req.Image.Image)
	return &runtimeapi.RemoveImageResponse{}, nil
}

// ImageFsInfo implements cri.Images: it does not know where its images are.
func (i *Images) ImageFsInfo(context.Context, *runtimeapi.ImageFsInfoRequest) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil
}

// Names returns the images that are present.
func (i *Images) Names() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Sorted(maps.Keys(i.present))
}
