package image_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/kubelet/image"
)

// registry holds images that are all one (ID x); those in private want joe.
type registry struct {
	cri.Images
	present, private map[string]bool
	pulls            int
}

func (s *registry) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	if !s.present[r.Image.Image] && r.Image.Image != "x" && r.Image.Image != "sha256:1" {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "x", RepoTags: slices.Sorted(maps.Keys(s.present))}}, nil
}

func (s *registry) PullImage(_ context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	s.pulls++
	if s.private[r.Image.Image] && r.Auth.GetUsername() != "joe" {
		return nil, errors.New("unauthorized")
	}
	s.present[r.Image.Image] = true
	return &runtimeapi.PullImageResponse{ImageRef: "x"}, nil
}

// byName holds one Docker configuration per secret.
type byName map[string]string

func (b byName) Secret(namespace, name string) (*corev1.Secret, error) {
	config, ok := b[name]
	if !ok {
		return nil, errors.New("not found")
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Type:       corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)},
	}, nil
}

func TestPrivateImageIsForPodsWithTheSecret(t *testing.T) {
	t.Parallel()
	s := &registry{
		present: map[string]bool{"r.example/preloaded:1": true},
		private: map[string]bool{"r.example/private:1": true, "r.example/preloaded:1": true},
	}
	const joe, eve = `{"auths":{"r.example":{"username":"joe","password":"x"}}}`, `{"auths":{"r.example":{"username":"eve","password":"y"}}}`
	secrets := byName{"joe": joe, "copy": joe, "eve": eve}
	dir := t.TempDir()
	for _, step := range []struct {
		image, secret string
		policy        corev1.PullPolicy
		reason        string // of the failure, "" for none
		pulls         int    // the registry's counter afterwards
	}{
		{"r.example/preloaded:1", "", "", "", 0},
		{"r.example/public:1", "joe", "", "", 1},
		{"r.example/private:1", "joe", "", "", 2},
		{"r.example/private:1", "joe", "", "", 2},
		{"r.example/private:1", "copy", "", "", 2},
		{"r.example/private:1", "", "", image.ErrImagePull, 3},
		{"r.example/private:1", "eve", "", image.ErrImagePull, 4},
		{"r.example/private:1", "gone", "", image.ErrImagePull, 5},
		{"r.example/private:1", "", corev1.PullNever, image.ErrImageNeverPull, 5},
		{"r.example/private:1", "joe", corev1.PullNever, "", 5},
		{"r.example/free:1", "", "", "", 6},
		{"r.example/free:1", "eve", "", "", 6},
		{"r.example/preloaded:1", "", "", "", 6}, // the same image, pulled by other names
		{"sha256:1", "", corev1.PullNever, image.ErrImageNeverPull, 6},
	} {
		// A new kubelet every time: it is all on disk.
		p := image.NewPuller(image.Config{Images: s, Secrets: secrets, BackOff: never{}, Dir: dir})
		pod := &corev1.Pod{}
		if step.secret != "" {
			pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: step.secret}}
		}
		_, err := p.Ensure(t.Context(), image.Request{
			Pod: pod, Container: &corev1.Container{Image: step.image, ImagePullPolicy: step.policy}, Event: func(string, string, string) {},
		})
		reason := ""
		if err != nil {
			reason = err.Reason
		}
		if reason != step.reason || s.pulls != step.pulls {
			t.Errorf("%+v: reason %q, %d pulls", step, reason, s.pulls)
		}
	}
}
