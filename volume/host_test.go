package volume_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/periplus/periplus/volume"
	"github.com/periplus/periplus/volume/all"
	"github.com/periplus/periplus/volume/volumetest"
)

func configPod(names ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
	for _, name := range names {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
		}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/" + name})
	}
	return pod
}

func newHost(t *testing.T, c volume.Config) *volume.Host {
	t.Helper()
	if c.Root == "" {
		c.Root = t.TempDir()
	}
	if c.Plugins == nil {
		c.Plugins = all.Plugins()
	}
	h, err := volume.NewHost(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestMountFailsInUpstreamsWords(t *testing.T) {
	t.Parallel()
	sources := volumetest.NewSources()
	sources.SetConfigMap("ns", "good", map[string]string{"k": "v"})
	var retried []types.UID
	h := newHost(t, volume.Config{Sources: sources, Retry: func(uid types.UID) { retried = append(retried, uid) }})
	pod := configPod("good", "x")
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: "unused", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		corev1.Volume{Name: "nfs", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}})
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "nfs"})

	mounted, err := h.Mount(t.Context(), pod)
	var got []string
	for _, e := range volume.MountErrors(err) {
		got = append(got, e.Error())
	}
	want := []string{
		`MountVolume.SetUp failed for volume "x" : configmap "x" not found`,
		`failed to get Plugin from volumeSpec for volume "nfs" err=no volume plugin matched`,
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %q\nwant %q", got, want)
	}
	volumetest.Equal(t, mounted["good"].HostPath, map[string]string{"k": "v"})

	// The change that was missing asks for another try; others do not.
	h.SourceChanged("Secret", "ns", "x")
	h.SourceChanged("ConfigMap", "other", "x")
	if len(retried) != 0 {
		t.Errorf("retried %v for nothing", retried)
	}
	h.SourceChanged("ConfigMap", "ns", "x")
	if len(retried) != 1 || retried[0] != "uid-1" {
		t.Errorf("retried %v", retried)
	}
}

func TestUnmountAfterRestart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sources := volumetest.NewSources()
	sources.SetConfigMap("ns", "a", map[string]string{"k": "v"})
	pod := configPod("a")
	mounted, err := newHost(t, volume.Config{Root: root, Sources: sources}).Mount(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(root, "pods/uid-1/volumes/kubernetes.io~configmap/a"); mounted["a"].HostPath != want {
		t.Errorf("mounted at %s, want %s", mounted["a"].HostPath, want)
	}
	h := newHost(t, volume.Config{Root: root, Sources: sources}) // the next process
	if uids, err := h.Pods(); err != nil || len(uids) != 1 || uids[0] != "uid-1" {
		t.Errorf("Pods: %v %v", uids, err)
	}
	other := filepath.Join(h.PodDir("uid-1"), "etc-hosts")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Unmount(t.Context(), "uid-1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(h.PodDir("uid-1"), "volumes")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("volumes are still there: %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the pod's other files: %v", err)
	}
	if err := h.Remove(t.Context(), "uid-1"); err != nil {
		t.Fatal(err)
	}
	if uids, err := h.Pods(); err != nil || len(uids) != 0 {
		t.Errorf("Pods after Remove: %v %v", uids, err)
	}
	if err := h.Unmount(t.Context(), "../escape"); err == nil {
		t.Error("a UID that leads out was accepted")
	}
}

func TestRefreshOnChangeAndDeadline(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		sources := volumetest.NewSources()
		sources.SetConfigMap("ns", "a", map[string]string{"k": "1"})
		var mu sync.Mutex
		issued, down := 0, false
		sources.OnToken(func(r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
			mu.Lock()
			defer mu.Unlock()
			if down {
				return nil, errors.New("API server is away")
			}
			issued++
			out := r.DeepCopy()
			out.Status.Token = string(rune('0' + issued))
			out.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
			return out, nil
		})
		plugins := append([]volume.Plugin{onDisk{}}, all.Plugins()...)
		h := newHost(t, volume.Config{Root: root, Sources: sources, Plugins: plugins})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := h.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		pod := configPod("a")
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "tok", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}})
		pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "tok"})
		mounted, err := h.Mount(ctx, pod)
		if err != nil {
			t.Fatal(err)
		}
		token := func() string { return volumetest.Files(t, mounted["tok"].HostPath)["token"] }

		sources.SetConfigMap("ns", "a", map[string]string{"k": "2"})
		h.SourceChanged("ConfigMap", "ns", "a")
		synctest.Wait()
		volumetest.Equal(t, mounted["a"].HostPath, map[string]string{"k": "2"})

		before := token()
		<-time.After(47 * time.Minute) // the bubble's clock: less than 80 % of an hour since the refresh
		if token() != before {
			t.Error("the token was renewed too early")
		}
		mu.Lock()
		down = true
		mu.Unlock()
		<-time.After(2 * time.Minute)
		if token() != before {
			t.Error("the token changed while the API server was away")
		}
		mu.Lock()
		down = false
		mu.Unlock()
		<-time.After(3 * time.Minute) // longer than the longest back-off
		synctest.Wait()
		if token() == before {
			t.Error("the token was not renewed")
		}
		cancel()
		wg.Wait()
	})
}

// onDisk is a token volume that needs no tmpfs.
type onDisk struct{}

func (onDisk) Name() string                   { return "kubernetes.io/projected" }
func (onDisk) Supports(v *corev1.Volume) bool { return v.Projected != nil }
func (onDisk) Live() bool                     { return true }
func (onDisk) SetUp(ctx context.Context, r volume.Request) (volume.Mounted, error) {
	f, next, err := r.TokenFile(ctx, &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3600))}, nil)
	if err != nil {
		return volume.Mounted{}, err
	}
	if err := r.DiskDir(0o755); err != nil {
		return volume.Mounted{}, err
	}
	return volume.Mounted{HostPath: r.Dir, RefreshAt: next}, volume.Project(r.Dir, volume.Payload{"token": f}, nil)
}
func (onDisk) TearDown(_ context.Context, dir string) error { return volume.Remove(dir) }

func TestFSGroup(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("changes owners: needs root")
	}
	sources := volumetest.NewSources()
	sources.SetConfigMap("ns", "a", map[string]string{"k": "v"})
	h := newHost(t, volume.Config{Sources: sources})
	pod := configPod("a")
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: new(int64(1234))}
	mounted, err := h.Mount(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(mounted["a"].HostPath, "k"))
	if err != nil {
		t.Fatal(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Gid != 1234 || info.Mode().Perm() != 0o644 {
		t.Errorf("file: gid %v mode %v", st.Gid, info.Mode())
	}
}

func TestSubPath(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("bind mounts: needs root")
	}
	sources := volumetest.NewSources()
	sources.SetConfigMap("ns", "a", map[string]string{"k": "v"})
	h := newHost(t, volume.Config{Sources: sources})
	pod := configPod("a")
	mounted, err := h.Mount(t.Context(), pod)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Remove(context.Background(), pod.UID); err != nil {
			t.Error(err)
		}
	})
	data := t.TempDir()
	for link, to := range map[string]string{"inside": "sub", "outside": "../..", "absolute": "/etc", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(data, link)); err != nil {
			t.Fatal(err)
		}
	}
	host := volume.Mounted{HostPath: data}
	for i, c := range []struct {
		m    volume.Mounted
		path string
		ok   bool
	}{
		{mounted["a"], "k", true},    // through two links, to a file
		{host, "sub/deep", true},     // made
		{host, "inside/deep", true},  // a link that stays inside
		{host, "outside/etc", false}, // links that lead out
		{host, "absolute", false}, {host, "absolute/passwd", false}, {host, "loop", false},
		{host, "../x", false}, {host, "/etc", false},
	} {
		for range 2 { // the second time it is mounted already
			got, err := h.SubPath(pod.UID, c.m, "v", "c", i, c.path)
			if (err == nil) != c.ok {
				t.Fatalf("%s: %q %v", c.path, got, err)
			}
			if err != nil {
				continue
			}
			a, errA := os.Stat(got)
			b, errB := os.Stat(filepath.Join(c.m.HostPath, c.path))
			if errA != nil || errB != nil || !os.SameFile(a, b) {
				t.Errorf("%s: %v %v", c.path, errA, errB)
			}
		}
	}
	// What is bound must survive the pod's removal of its directories.
	if err := h.Remove(t.Context(), pod.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, "sub/deep")); err != nil {
		t.Errorf("removing the pod reached into the volume: %v", err)
	}
}
