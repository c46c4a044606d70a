package app

import (
	"context"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	wasmbin "github.com/periplus/periplus/containers/wasm/bin"
)

// ensureRuntimeClass makes the class of pods whose programs are WebAssembly modules.
func ensureRuntimeClass(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: wasmbin.Handler}, Handler: wasmbin.Handler,
	}, metav1.CreateOptions{})
	return made(err)
}
