package image_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/cri"
	"github.com/periplus/periplus/kubelet/image"
)

type never struct{}

func (never) Left(string) (time.Duration, time.Duration) { return 0, 0 }
func (never) Next(string, time.Time)                     {}

type secret struct{ config string }

func (s secret) Secret(string, string) (*corev1.Secret, error) {
	return &corev1.Secret{Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(s.config)}}, nil
}

type store struct {
	cri.Images
	users []string
}

func (s *store) ImageStatus(context.Context, *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	return &runtimeapi.ImageStatusResponse{}, nil
}

func (s *store) PullImage(_ context.Context, r *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	s.users = append(s.users, r.Auth.GetUsername()+":"+r.Auth.GetPassword())
	return &runtimeapi.PullImageResponse{ImageRef: "ref"}, nil
}

func TestPullSecrets(t *testing.T) {
	t.Parallel()
	const config = `{"auths":{
		"https://index.docker.io/v1/":{"auth":"aHViOnB3"},
		"registry.example.com:5000":{"username":"any","password":"1"},
		"registry.example.com:5000/team":{"username":"team","password":"2"},
		"*.wild.example":{"username":"wild","password":"3"}}}`
	for img, want := range map[string]string{
		"nginx":                                "hub:pw",
		"registry.example.com:5000/team/app:1": "team:2",
		"registry.example.com:5000/app":        "any:1",
		"registry.example.com/app":             ":",
		"eu.wild.example/app":                  "wild:3",
		"a.b.wild.example/app":                 ":",
	} {
		s := &store{}
		p := image.NewPuller(image.Config{Images: s, Secrets: secret{config}, BackOff: never{}})
		pod := &corev1.Pod{Spec: corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "s"}}}}
		got, err := p.Ensure(t.Context(), image.Request{Pod: pod, Container: &corev1.Container{Image: img}, Event: func(string, string, string) {}})
		if err != nil {
			t.Fatal(err)
		}
		if s.users[0] != want || !got.Pulled || got.Ref != "ref" {
			t.Errorf("%s: %v, want %s first", img, s.users, want)
		}
	}
}
