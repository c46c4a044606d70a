package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// On makes an event handler of one function. old is the zero value for an object
// that appeared, now for one that is gone; exactly one of the two may be.
func On[T metav1.Object](change func(old, now T)) cache.ResourceEventHandler {
	var none T
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if now, ok := obj.(T); ok {
				change(none, now)
			}
		},
		UpdateFunc: func(a, b any) {
			old, ok1 := a.(T)
			now, ok2 := b.(T)
			if ok1 && ok2 {
				change(old, now)
			}
		},
		DeleteFunc: func(obj any) {
			// A deletion that the watch missed arrives as the last state known.
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			if old, ok := obj.(T); ok {
				change(old, none)
			}
		},
	}
}

// Self enqueues the key of every object that appears, changes or goes.
func Self(q *Queue) cache.ResourceEventHandler {
	enqueue := func(obj any) {
		if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = gone.Obj
		}
		if o, ok := obj.(metav1.Object); ok {
			q.Add(KeyOf(o))
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, now any) { enqueue(now) },
		DeleteFunc: enqueue,
	}
}

// KeyOf returns the key of obj.
func KeyOf(obj metav1.Object) Key {
	return Key{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// OwnerKey returns the key of obj's controller if that is of the given kind in
// the given API group.
func OwnerKey(obj metav1.Object, group, kind string) (Key, bool) {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || ref.Kind != kind || groupOf(ref.APIVersion) != group {
		return Key{}, false
	}
	return Key{Namespace: obj.GetNamespace(), Name: ref.Name}, true
}

func groupOf(apiVersion string) string {
	for i := range len(apiVersion) {
		if apiVersion[i] == '/' {
			return apiVersion[:i]
		}
	}
	return ""
}
