package app

import (
	"context"

	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// recordEvents starts a broadcaster that writes core/v1 events until stop is called.
func recordEvents(ctx context.Context, c kubernetes.Interface) (b record.EventBroadcaster, stop func()) {
	b = record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.CoreV1().Events("")})
	return b, b.Shutdown
}
