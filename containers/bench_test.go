package containers_test

import (
	"fmt"
	"sync"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// BenchmarkPod is what a pod costs from RunPodSandbox until its container runs,
// without image and network.
func BenchmarkPod(b *testing.B) {
	n := newNode(b)
	seccomp := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	for _, profile := range []*runtimeapi.SecurityProfile{nil, seccomp} {
		b.Run(fmt.Sprintf("seccomp=%t", profile != nil), func(b *testing.B) {
			for i := range b.N {
				pod := n.pod(podConfig(n, fmt.Sprintf("p%t%d-%d", profile != nil, b.N, i)))
				n.run(pod, containerConfig("app", []string{"sleep", "1000"}, func(c *runtimeapi.ContainerConfig) {
					c.Linux.SecurityContext.Seccomp = profile
				}))
				b.StopTimer()
				_, _ = n.RemovePodSandbox(n.ctx(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
				b.StartTimer()
			}
		})
	}
}

// BenchmarkPods50 starts fifty pods at once.
func BenchmarkPods50(b *testing.B) {
	n := newNode(b)
	for round := range b.N {
		var group sync.WaitGroup
		pods := make([]string, 50)
		for i := range pods {
			group.Go(func() {
				pods[i] = n.pod(podConfig(n, fmt.Sprintf("r%d-%d-p%d", b.N, round, i)))
				n.run(pods[i], containerConfig("app", []string{"sleep", "1000"}))
			})
		}
		group.Wait()
		b.StopTimer()
		for _, pod := range pods {
			_, _ = n.RemovePodSandbox(n.ctx(), &runtimeapi.RemovePodSandboxRequest{PodSandboxId: pod})
		}
		b.StartTimer()
	}
}

// BenchmarkStart is StartContainer alone: one call of the OCI runtime.
func BenchmarkStart(b *testing.B) {
	n := newNode(b)
	pod := n.pod(podConfig(n, "start"))
	for i := range b.N {
		b.StopTimer()
		id := n.create(pod, containerConfig(fmt.Sprintf("c%d-%d", b.N, i), []string{"sleep", "1000"}))
		b.StartTimer()
		if _, err := n.StartContainer(n.ctx(), &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		_, _ = n.RemoveContainer(n.ctx(), &runtimeapi.RemoveContainerRequest{ContainerId: id})
		b.StartTimer()
	}
}

// BenchmarkExec is an exec probe.
func BenchmarkExec(b *testing.B) {
	n := newNode(b)
	id := n.run(n.pod(podConfig(n, "exec")), containerConfig("app", []string{"sleep", "1000"}))
	for b.Loop() {
		n.exec(id, "true")
	}
}
