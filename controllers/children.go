package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// byController is the index of an informer's objects by the UID of their
// controller, or by namespace for those without one.
const byController = "periplus.io/by-controller"

// IndexByController gives informer the index that Children and Orphans read.
// Several controllers may ask for it.
func IndexByController(informer cache.SharedIndexInformer) error {
	if _, ok := informer.GetIndexer().GetIndexers()[byController]; ok {
		return nil
	}
	return informer.AddIndexers(cache.Indexers{byController: func(obj any) ([]string, error) {
		o, ok := obj.(metav1.Object)
		if !ok {
			return nil, nil
		}
		if ref := metav1.GetControllerOfNoCopy(o); ref != nil {
			return []string{string(ref.UID)}, nil
		}
		return []string{orphanPrefix + o.GetNamespace()}, nil
	}})
}

const orphanPrefix = "orphans of "

// Children returns the objects whose controller has the given UID.
func Children[T metav1.Object](indexer cache.Indexer, owner types.UID) []T {
	return indexed[T](indexer, string(owner))
}

// Orphans returns the objects of a namespace that have no controller.
func Orphans[T metav1.Object](indexer cache.Indexer, namespace string) []T {
	return indexed[T](indexer, orphanPrefix+namespace)
}

func indexed[T metav1.Object](indexer cache.Indexer, value string) []T {
	objects, err := indexer.ByIndex(byController, value)
	if err != nil {
		return nil // the index was never asked for: a mistake that the first test shows
	}
	out := make([]T, 0, len(objects))
	for _, o := range objects {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// byNode is the index of pods by the name of their node.
const byNode = "periplus.io/by-node"

// IndexPodsByNode gives the pod informer the index that PodsOnNode reads.
func IndexPodsByNode(informer cache.SharedIndexInformer) error {
	if _, ok := informer.GetIndexer().GetIndexers()[byNode]; ok {
		return nil
	}
	return informer.AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		if p, ok := obj.(*corev1.Pod); ok && p.Spec.NodeName != "" {
			return []string{p.Spec.NodeName}, nil
		}
		return nil, nil
	}})
}

// PodsOnNode returns the pods that are bound to a node.
func PodsOnNode(indexer cache.Indexer, node string) []*corev1.Pod {
	objects, err := indexer.ByIndex(byNode, node)
	if err != nil {
		return nil
	}
	out := make([]*corev1.Pod, 0, len(objects))
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok {
			out = append(out, p)
		}
	}
	return out
}
