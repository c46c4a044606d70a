package apiserver_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// handler sends what an informer shows.
func handler(seen chan<- *appsv1.Deployment) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { seen <- obj.(*appsv1.Deployment) },
		UpdateFunc: func(_, obj any) { seen <- obj.(*appsv1.Deployment) },
	}
}

func clientOf(t *testing.T, config *restclient.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
