package app

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/app/archives"
	"github.com/periplus/periplus/app/manifests"
	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/containers/image"
)

// SystemManifests is a directory of manifests beside the state directory's own, for the
// cluster in the usual place only.
const SystemManifests = "/etc/periplus/manifests"

// manifestDirs are the directories whose files the server keeps applied.
func (c *Config) manifestDirs() []string {
	if len(c.Manifests) > 0 {
		return c.Manifests
	}
	dirs := []string{filepath.Join(c.StateDir, "manifests")}
	if c.StateDir == Defaults().StateDir {
		dirs = append(dirs, SystemManifests)
	}
	return dirs
}

// archivesDir is where image archives are dropped: beside the store's own folders.
func (c *Config) archivesDir() string {
	if c.ImageArchives != "" {
		return c.ImageArchives
	}
	return c.imagesDir()
}

// manifestsStage keeps the cluster as the files in the manifest directories say.
func (s *controlPlane) manifestsStage() stage {
	return stage{name: "manifests", after: []string{"apiserver"}, run: func(ctx context.Context, ready func()) error {
		log := s.log.With(base.KeyComponent, "manifests")
		connect := func() (*restclient.Config, error) {
			config, err := s.connect("admin")
			if err == nil {
				config = restclient.CopyConfig(config)
				config.ContentType = "" // objects of any kind: JSON
				config.AcceptContentTypes = ""
			}
			return config, err
		}
		var parts []base.Component
		for i, dir := range s.config.manifestDirs() {
			name := "manifests.json"
			if i > 0 {
				name = "manifests-" + filepath.Base(filepath.Dir(dir)) + ".json"
			}
			k, err := manifests.New(manifests.Config{
				Dir: dir, Record: filepath.Join(s.config.StateDir, name), Connect: connect, Log: log,
				Failed: func(message string) { s.manifestFailed(ctx, connect, message, log) },
			})
			if err != nil {
				return err
			}
			parts = append(parts, base.Component{Name: "manifests in " + dir, Run: k.Run})
		}
		ready()
		return base.RunAll(ctx, parts...)
	}}
}

// manifestFailed makes an event about the node.
func (s *controlPlane) manifestFailed(ctx context.Context, connect func() (*restclient.Config, error), message string, log *slog.Logger) {
	config, err := connect()
	if err != nil {
		return // the log has the message
	}
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return
	}
	now := metav1.NewTime(time.Now())
	_, err = c.CoreV1().Events(metav1.NamespaceDefault).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: s.config.NodeName + "-manifest-", Namespace: metav1.NamespaceDefault},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: s.config.NodeName, UID: types.UID(s.config.NodeName)},
		Reason:         manifests.EventReason, Type: manifests.EventType, Message: limit(message, 1024),
		Source:         corev1.EventSource{Component: "manifests", Host: s.config.NodeName},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil {
		log.Warn("cannot make an event", base.KeyError, err)
	}
}

// limit cuts a text to what an event may have.
func limit(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return s[:most-3] + "..."
}

// imageArchives imports what is dropped into the directory of image archives.
func (c *Config) imageArchives(images *image.Store, log *slog.Logger) *archives.Importer {
	return archives.New(archives.Config{Dir: c.archivesDir(), Record: filepath.Join(c.StateDir, "image-archives.json"), Images: images, Log: log})
}
