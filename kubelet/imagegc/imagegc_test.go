package imagegc_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/kubelet/imagegc"
)

// node is a disk of 1000 bytes with images on it.
type node struct {
	images     []*runtimeapi.Image
	containers []string // images of containers
	named      []string
	other      int64 // what else is on the disk
	events     []string
}

func (n *node) ListImages(context.Context, *runtimeapi.ListImagesRequest) (*runtimeapi.ListImagesResponse, error) {
	return &runtimeapi.ListImagesResponse{Images: n.images}, nil
}

func (n *node) ImageStatus(_ context.Context, r *runtimeapi.ImageStatusRequest) (*runtimeapi.ImageStatusResponse, error) {
	for _, i := range n.images {
		if i.RepoTags[0] == r.Image.Image {
			return &runtimeapi.ImageStatusResponse{Image: i}, nil
		}
	}
	return &runtimeapi.ImageStatusResponse{}, nil
}

func (n *node) RemoveImage(_ context.Context, r *runtimeapi.RemoveImageRequest) (*runtimeapi.RemoveImageResponse, error) {
	for i, img := range n.images {
		if img.Id == r.Image.Image {
			n.images = append(n.images[:i:i], n.images[i+1:]...)
			break
		}
	}
	return &runtimeapi.RemoveImageResponse{}, nil
}

func (n *node) ListContainers(context.Context, *runtimeapi.ListContainersRequest) (*runtimeapi.ListContainersResponse, error) {
	out := &runtimeapi.ListContainersResponse{}
	for _, id := range n.containers {
		out.Containers = append(out.Containers, &runtimeapi.Container{ImageId: id, State: runtimeapi.ContainerState_CONTAINER_EXITED})
	}
	return out, nil
}

func (n *node) disk(context.Context) (int64, int64, error) {
	free := 1000 - n.other
	for _, i := range n.images {
		free -= int64(i.Size)
	}
	return 1000, free, nil
}

func (n *node) add(id string, size uint64) {
	n.images = append(n.images, &runtimeapi.Image{Id: "id-" + id, RepoTags: []string{id + ":1"}, Size: size, Pinned: id == "pinned"})
}

func (n *node) left() string {
	var out []string
	for _, i := range n.images {
		out = append(out, strings.TrimPrefix(i.Id, "id-"))
	}
	return strings.Join(out, " ")
}

func (n *node) collector(t *testing.T, p imagegc.Policy) *imagegc.Collector {
	t.Helper()
	c, err := imagegc.New(imagegc.Config{Policy: p, Images: n, Containers: n, Named: func() []string { return n.named }, Disk: n.disk,
		Event: func(_, reason, message string) { n.events = append(n.events, reason+" "+message) }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &node{containers: []string{"id-run"}, named: []string{"named:1"}}
		for _, id := range []string{"pinned", "old", "run", "named", "later"} {
			n.add(id, 150)
		}
		c := n.collector(t, imagegc.DefaultPolicy())
		n.containers = append(n.containers, "id-later") // used for a while
		c.Tick(t.Context())
		<-time.After(time.Hour)
		c.Tick(t.Context())
		n.containers = n.containers[:1]
		n.add("new", 50)
		if c.Tick(t.Context()); n.left() != "pinned old run named later new" {
			t.Errorf("at 80 %%: %s are left", n.left())
		}
		n.other = 50
		// Down to 80 %: the oldest suffices. What came a moment ago stays anyhow.
		if c.Tick(t.Context()); n.left() != "pinned run named later new" {
			t.Errorf("at 85 %%: %s are left", n.left())
		}
		n.other = 250
		<-time.After(3 * time.Minute)
		c.Tick(t.Context())
		if n.left() != "pinned run named" {
			t.Errorf("then %s are left", n.left())
		}
		n.other = 500
		c.Tick(t.Context())
		<-time.After(10 * time.Second)
		c.Tick(t.Context())
		want := "FreeDiskSpaceFailed Insufficient free disk space on the node's image filesystem (95% of 1000 B used). " +
			"Failed to free sufficient space by deleting unused images (freed 0 bytes). " +
			"Investigate disk usage, as it could be used by active images, logs, volumes, or other data."
		if len(n.events) != 1 || n.events[0] != want {
			t.Errorf("events %q", n.events)
		}
	})
}

func TestMaximumAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &node{containers: []string{"id-run"}}
		n.add("run", 10)
		n.add("idle", 10)
		p := imagegc.DefaultPolicy()
		p.MaxAge = time.Hour
		c := n.collector(t, p)
		for range 11 {
			c.Tick(t.Context())
			<-time.After(5 * time.Minute)
		}
		if n.left() != "run idle" {
			t.Errorf("after 55 minutes %s are left", n.left())
		}
		<-time.After(10 * time.Minute)
		if c.Tick(t.Context()); n.left() != "run" {
			t.Errorf("after more than an hour %s are left", n.left())
		}
	})
}

func TestRemoveUnusedKeepsYoungImages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &node{containers: []string{"id-run"}}
		n.add("run", 10)
		n.add("idle", 10)
		c := n.collector(t, imagegc.DefaultPolicy())
		if err := c.RemoveUnused(t.Context()); err != nil || n.left() != "run idle" {
			t.Errorf("%v, %s", err, n.left())
		}
		<-time.After(2 * time.Minute)
		if err := c.RemoveUnused(t.Context()); err != nil || n.left() != "run" {
			t.Errorf("%v, %s", err, n.left())
		}
	})
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	for _, p := range []imagegc.Policy{{HighPercent: 101}, {HighPercent: 80, LowPercent: 81}, {LowPercent: -1, HighPercent: 1}, {HighPercent: 1, MinAge: -1}, {HighPercent: 1, MinAge: 2, MaxAge: 1}} {
		if p.Validate() == nil {
			t.Errorf("%+v is allowed", p)
		}
	}
}
