package namespace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/controllers"
)

// width is how many kinds are deleted at a time.
const width = 8

var pods = schema.GroupResource{Resource: "pods"}

// leftover is what a pass over a namespace could not delete at once.
type leftover struct {
	mu         sync.Mutex // guards the rest while a pass runs
	resources  map[schema.GroupResource]int
	finalizers map[string]int
	held       []remains // the same, for the lookout
	grace      time.Duration
	failures   []error
	discovery  error
}

func (l *leftover) clean() bool {
	return len(l.resources) == 0 && len(l.failures) == 0 && l.discovery == nil
}

// empty deletes all content. Pods go first and alone: what they may still use
// (network policies, secrets, volumes) outlives them.
func (r *reconciler) empty(ctx context.Context, namespace string) *leftover {
	left := &leftover{resources: map[schema.GroupResource]int{}, finalizers: map[string]int{}}
	kinds, err := r.kinds()
	left.discovery = err

	if i := slices.IndexFunc(kinds, func(k kind) bool { return k.gvr.GroupResource() == pods }); i >= 0 {
		r.emptyKind(ctx, namespace, kinds[i], left)
		if left.resources[pods] > 0 {
			return left
		}
		kinds = slices.Delete(kinds, i, i+1)
	}
	_ = controllers.Parallel(len(kinds), width, func(i int) error {
		r.emptyKind(ctx, namespace, kinds[i], left)
		return nil
	})
	return left
}

type kind struct {
	gvr        schema.GroupVersionResource
	collection bool // can be deleted as a collection
}

// kinds lists the namespaced resources that can be listed and deleted.
func (r *reconciler) kinds() ([]kind, error) {
	lists, err := r.Discovery.ServerPreferredResources()
	var out []kind
	for _, list := range lists {
		gv, parseErr := schema.ParseGroupVersion(list.GroupVersion)
		if parseErr != nil {
			continue
		}
		for _, res := range list.APIResources {
			if !res.Namespaced || !slices.Contains(res.Verbs, "delete") || !slices.Contains(res.Verbs, "list") || strings.Contains(res.Name, "/") {
				continue
			}
			out = append(out, kind{gv.WithResource(res.Name), slices.Contains(res.Verbs, "deletecollection")})
		}
	}
	return out, err
}

// emptyKind deletes the objects of one kind and notes what is left of them.
func (r *reconciler) emptyKind(ctx context.Context, namespace string, k kind, left *leftover) {
	api := r.Metadata.Resource(k.gvr).Namespace(namespace)
	fail := func(err error) {
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return // the kind went away, or does not do what it said
		}
		left.mu.Lock()
		defer left.mu.Unlock()
		left.failures = append(left.failures, err)
	}
	objects, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		fail(err)
		return
	}
	if len(objects.Items) == 0 {
		return
	}
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	collected := false
	if k.collection {
		err := api.DeleteCollection(ctx, options, metav1.ListOptions{})
		collected = !apierrors.IsMethodNotSupported(err)
		if collected && err != nil {
			fail(err)
		}
	}
	if !collected {
		for i := range objects.Items {
			if err := api.Delete(ctx, objects.Items[i].Name, options); err != nil {
				fail(err)
			}
		}
	}
	if objects, err = api.List(ctx, metav1.ListOptions{}); err != nil {
		fail(err)
		return
	}
	left.mu.Lock()
	defer left.mu.Unlock()
	watched := k.gvr.GroupResource() != pods // the informer tells of pods
	if watched && len(objects.Items) > 0 {
		left.held = append(left.held, remains{k.gvr, objects.ResourceVersion, map[string][]string{}})
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		if watched {
			left.held[len(left.held)-1].finalizers[o.Name] = o.Finalizers
		}
		left.resources[k.gvr.GroupResource()]++
		for _, f := range o.Finalizers {
			left.finalizers[f]++
		}
		if o.DeletionGracePeriodSeconds != nil {
			left.grace = max(left.grace, time.Duration(*o.DeletionGracePeriodSeconds)*time.Second)
		}
	}
}

// conditions describes the pass as upstream does.
func (l *leftover) conditions() []corev1.NamespaceCondition {
	out := []corev1.NamespaceCondition{
		outcome(corev1.NamespaceDeletionDiscoveryFailure, l.discovery != nil, "DiscoveryFailed", "ResourcesDiscovered",
			fmt.Sprintf("Discovery failed for some groups, %v", l.discovery), "All resources successfully discovered"),
		outcome(corev1.NamespaceDeletionGVParsingFailure, false, "GroupVersionParsingFailed", "ParsedGroupVersions",
			"", "All legacy kube types successfully parsed"),
		outcome(corev1.NamespaceDeletionContentFailure, len(l.failures) > 0, "ContentDeletionFailed", "ContentDeleted",
			l.failureText(), "All content successfully deleted, may be waiting on finalization"),
	}
	var resources, finalizers []string
	for gr, n := range l.resources {
		resources = append(resources, fmt.Sprintf("%s.%s has %d resource instances", gr.Resource, gr.Group, n))
	}
	slices.Sort(resources)
	for _, f := range slices.Sorted(maps.Keys(l.finalizers)) {
		finalizers = append(finalizers, fmt.Sprintf("%s in %d resource instances", f, l.finalizers[f]))
	}
	return append(out,
		outcome(corev1.NamespaceContentRemaining, len(resources) > 0, "SomeResourcesRemain", "ContentRemoved",
			"Some resources are remaining: "+strings.Join(resources, ", "), "All content successfully removed"),
		outcome(corev1.NamespaceFinalizersRemaining, len(finalizers) > 0, "SomeFinalizersRemain", "ContentHasNoFinalizers",
			"Some content in the namespace has finalizers remaining: "+strings.Join(finalizers, ", "), "All content-preserving finalizers finished"),
	)
}

func (l *leftover) failureText() string {
	texts := make([]string, len(l.failures))
	for i, err := range l.failures {
		texts[i] = err.Error()
	}
	slices.Sort(texts)
	return fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(texts), strings.Join(texts, ", "))
}

func outcome(t corev1.NamespaceConditionType, bad bool, badReason, goodReason, badMessage, goodMessage string) corev1.NamespaceCondition {
	if bad {
		return corev1.NamespaceCondition{Type: t, Status: corev1.ConditionTrue, Reason: badReason, Message: badMessage}
	}
	return corev1.NamespaceCondition{Type: t, Status: corev1.ConditionFalse, Reason: goodReason, Message: goodMessage}
}
