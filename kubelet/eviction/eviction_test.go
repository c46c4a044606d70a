package eviction_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsv1alpha1 "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/periplus/periplus/kubelet/eviction"
)

func parse(t *testing.T, c eviction.Config) []eviction.Threshold {
	t.Helper()
	out, err := eviction.Parse(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func observed(s eviction.Signal, available, capacity string) eviction.Observations {
	return eviction.Observations{s: {Available: resource.MustParse(available), Capacity: resource.MustParse(capacity)}}
}

func TestParse(t *testing.T) {
	t.Parallel()
	got := parse(t, eviction.Config{
		Hard: map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "imagefs.available": "0%"},
		Soft: map[string]string{"pid.available": "500"}, SoftGracePeriod: map[string]string{"pid.available": "1m"},
		MinimumReclaim: map[string]string{"nodefs.available": "1Gi"},
	})
	var names []string
	for _, th := range got {
		names = append(names, fmt.Sprintf("%s/%v/%v", th.Signal, th.Grace, th.MinReclaim != nil))
	}
	if want := "memory.available/0s/false allocatableMemory.available/0s/false nodefs.available/0s/true pid.available/1m0s/false"; strings.Join(names, " ") != want {
		t.Errorf("%v", names)
	}
	for _, bad := range []eviction.Config{
		{Hard: map[string]string{"disk": "1Gi"}},
		{Hard: map[string]string{"memory.available": "lots"}},
		{Hard: map[string]string{"memory.available": "-1%"}},
		{Soft: map[string]string{"memory.available": "1Gi"}}, // without a time
		{SoftGracePeriod: map[string]string{"memory.available": "soon"}},
	} {
		if _, err := eviction.Parse(bad); err == nil {
			t.Errorf("%+v is allowed", bad)
		}
	}
	capacity := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("100Gi")}
	kept := eviction.Reserve(got, capacity)
	if kept.Memory().String() != "100Mi" || kept.StorageEphemeral().String() != "10Gi" {
		t.Errorf("kept %v", kept)
	}
}

func TestState(t *testing.T) {
	t.Parallel()
	s := eviction.NewState(parse(t, eviction.Config{
		Hard: map[string]string{"nodefs.available": "10%"}, MinimumReclaim: map[string]string{"nodefs.available": "5%"},
		Soft: map[string]string{"nodefs.available": "20%"}, SoftGracePeriod: map[string]string{"nodefs.available": "30s"},
	}), 5*time.Minute)
	began := time.Unix(0, 0)
	for _, c := range []struct {
		at         time.Duration
		available  string
		conditions string
		act        int
	}{
		{0, "30", "[]", 0},
		{10 * time.Second, "15", "[DiskPressure]", 0}, // soft, not for long
		{35 * time.Second, "15", "[DiskPressure]", 0},
		{40 * time.Second, "15", "[DiskPressure]", 1},
		{50 * time.Second, "22", "[DiskPressure]", 1}, // not yet enough above it
		{60 * time.Second, "26", "[DiskPressure]", 0},
		{70 * time.Second, "9", "[DiskPressure]", 1}, // hard at once, soft from now
		{80 * time.Second, "14", "[DiskPressure]", 1},
		{90 * time.Second, "50", "[DiskPressure]", 0},
		{80*time.Second + 5*time.Minute - 1, "50", "[DiskPressure]", 0},
		{80*time.Second + 5*time.Minute, "50", "[]", 0},
	} {
		conditions, act := s.Next(began.Add(c.at), observed(eviction.NodeFsAvailable, c.available, "100"))
		if fmt.Sprint(conditions) != c.conditions || len(act) != c.act {
			t.Errorf("%v, %s left: %v and %d to act on, want %s and %d", c.at, c.available, conditions, len(act), c.conditions, c.act)
		}
	}
}

func TestMemoryIsFirst(t *testing.T) {
	t.Parallel()
	s := eviction.NewState(parse(t, eviction.Config{Hard: map[string]string{"imagefs.available": "10%", "pid.available": "100", "memory.available": "1Gi"}}), time.Minute)
	o := observed(eviction.MemoryAvailable, "1Mi", "4Gi")
	for _, x := range []eviction.Signal{eviction.ImageFsAvailable, eviction.PIDAvailable} {
		o[x] = observed(x, "1", "1000")[x]
	}
	conditions, act := s.Next(time.Unix(0, 0), o)
	if len(act) != 3 || act[0].Signal != eviction.MemoryAvailable || len(conditions) != 3 {
		t.Errorf("%v, %v", act, conditions)
	}
}

// pod uses that many Mi of memory, of its disk, and that many processes.
func pod(name string, priority int32, request string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{{Name: "c"}}}}
	if request != "" {
		q := resource.MustParse(request)
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: q, corev1.ResourceEphemeralStorage: q}
	}
	return p
}

func stats(mi map[string]uint64) eviction.Stats {
	return func(p *corev1.Pod) (*statsv1alpha1.PodStats, bool) {
		n, ok := mi[p.Name]
		if !ok {
			return nil, false
		}
		bytes, zero := n<<20, uint64(0)
		fs := &statsv1alpha1.FsStats{UsedBytes: &bytes, InodesUsed: &n}
		return &statsv1alpha1.PodStats{
			Memory: &statsv1alpha1.MemoryStats{WorkingSetBytes: &bytes}, ProcessStats: &statsv1alpha1.ProcessStats{ProcessCount: &n}, EphemeralStorage: fs,
			Containers: []statsv1alpha1.ContainerStats{{Name: "c", Memory: &statsv1alpha1.MemoryStats{WorkingSetBytes: &bytes}, Rootfs: fs, Logs: &statsv1alpha1.FsStats{UsedBytes: &zero}}},
		}, true
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	use := stats(map[string]uint64{"small": 10, "big": 500, "within": 900, "important": 800, "low": 5})
	for _, c := range []struct {
		signal eviction.Signal
		layout eviction.Layout
		want   string
	}{
		{eviction.MemoryAvailable, eviction.Layout{}, "unknown low big small important within"},
		{eviction.NodeFsAvailable, eviction.Layout{}, "unknown low big small important within"},
		{eviction.ImageFsAvailable, eviction.Layout{Images: true}, "unknown low big small important within"},
		{eviction.PIDAvailable, eviction.Layout{}, "low unknown within big small important"},
	} {
		pods := []*corev1.Pod{pod("small", 0, ""), pod("within", 0, "1Gi"), pod("important", 9, "1Mi"), pod("big", 0, "100Mi"), pod("low", -1, "1Mi"), pod("unknown", 0, "")}
		eviction.Rank(c.signal, c.layout, pods, use)
		var got []string
		for _, p := range pods {
			got = append(got, p.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.signal, got, c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	th := parse(t, eviction.Config{Hard: map[string]string{"memory.available": "100Mi"}})
	got, notes := eviction.Message(corev1.ResourceMemory, pod("p", 0, "10Mi"), stats(map[string]uint64{"p": 20}), th, observed(eviction.MemoryAvailable, "50Mi", "1Gi"))
	want := "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. Container c was using 20Mi, request is 10Mi, has larger consumption of memory. "
	if got != want || notes["offending_containers"] != "c" || notes["offending_containers_usage"] != "20Mi" || notes["starved_resource"] != "memory" {
		t.Errorf("got  %s\nwant %s\n%v", got, want, notes)
	}
	limit := resource.MustParse("10Mi")
	p := pod("p", 0, "")
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: limit}
	st, _ := stats(map[string]uint64{"p": 20})(p)
	if got, over := eviction.OverLimit(p, st, eviction.Layout{}); !over || got != "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. " {
		t.Errorf("%v %q", over, got)
	}
	st.EphemeralStorage = nil
	if got, over := eviction.OverLimit(p, st, eviction.Layout{}); !over || got != `Container c exceeded its local ephemeral storage limit "10Mi". ` {
		t.Errorf("%v %q", over, got)
	}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
	used := uint64(11 << 20)
	st.VolumeStats = []statsv1alpha1.VolumeStats{{Name: "v", FsStats: statsv1alpha1.FsStats{UsedBytes: &used}}}
	if got, over := eviction.OverLimit(p, st, eviction.Layout{}); !over || got != `Usage of EmptyDir volume "v" exceeds the limit "10Mi". ` {
		t.Errorf("%v %q", over, got)
	}
	if !eviction.Limited(p) || eviction.Limited(pod("q", 0, "1Gi")) {
		t.Error("Limited is wrong")
	}
}

func TestAdmits(t *testing.T) {
	t.Parallel()
	memory, disk := []corev1.NodeConditionType{corev1.NodeMemoryPressure}, []corev1.NodeConditionType{corev1.NodeDiskPressure}
	tolerant := pod("t", 0, "")
	tolerant.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}
	for i, c := range []struct {
		conditions []corev1.NodeConditionType
		pod        *corev1.Pod
		class      corev1.PodQOSClass
		critical   bool
		want       string
	}{
		{nil, pod("p", 0, ""), corev1.PodQOSBestEffort, false, ""},
		{memory, pod("p", 0, ""), corev1.PodQOSBestEffort, false, "The node had condition: [MemoryPressure]. "},
		{memory, pod("p", 0, ""), corev1.PodQOSBurstable, false, ""},
		{memory, tolerant, corev1.PodQOSBestEffort, false, ""},
		{disk, tolerant, corev1.PodQOSGuaranteed, false, "The node had condition: [DiskPressure]. "},
		{disk, tolerant, corev1.PodQOSBestEffort, true, ""},
	} {
		got, ok := eviction.Admits(c.conditions, c.pod, c.class, c.critical)
		if got != c.want || ok != (c.want == "") {
			t.Errorf("%d: %v %q, want %q", i, ok, got, c.want)
		}
	}
}
