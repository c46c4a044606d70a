package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Claim says which objects belong to an owner: those that it controls and its
// selector still matches. It releases children that no longer match and adopts
// matching objects that have no controller.
type Claim[T metav1.Object] struct {
	Owner      metav1.Object
	OwnerGVK   schema.GroupVersionKind
	Selector   labels.Selector
	Finalizers []string // added on adoption

	// Live reads the owner from the API server: adopting with a stale owner would
	// give the children of a deleted owner to the wrong one.
	Live func(ctx context.Context) (metav1.Object, error)
	// Patch applies a strategic merge patch to a child.
	Patch func(ctx context.Context, child T, patch []byte) error
}

// Sort returns the objects that belong to the owner: children are those that it
// controls now, orphans those of the namespace without a controller.
func (c Claim[T]) Sort(ctx context.Context, children, orphans []T) ([]T, error) {
	deleting := c.Owner.GetDeletionTimestamp() != nil
	var errs []error
	claimed := make([]T, 0, len(children))
	for _, child := range children {
		switch {
		case c.Selector.Matches(labels.Set(child.GetLabels())):
			claimed = append(claimed, child)
		case deleting:
		default:
			if err := c.release(ctx, child); err != nil {
				errs = append(errs, err)
			}
		}
	}
	if deleting {
		return claimed, errors.Join(errs...)
	}
	checked := false
	for _, orphan := range orphans {
		if orphan.GetDeletionTimestamp() != nil || !c.Selector.Matches(labels.Set(orphan.GetLabels())) {
			continue
		}
		if !checked {
			if err := c.mayAdopt(ctx); err != nil {
				return claimed, errors.Join(append(errs, err)...)
			}
			checked = true
		}
		err := c.Patch(ctx, orphan, c.adoption(orphan))
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			errs = append(errs, err)
		default:
			claimed = append(claimed, orphan)
		}
	}
	return claimed, errors.Join(errs...)
}

func (c Claim[T]) mayAdopt(ctx context.Context) error {
	live, err := c.Live(ctx)
	if err != nil {
		return fmt.Errorf("can't adopt: %w", err)
	}
	if live.GetUID() != c.Owner.GetUID() {
		return fmt.Errorf("can't adopt: original %s %s/%s is gone: got uid %s, wanted %s",
			c.OwnerGVK.Kind, c.Owner.GetNamespace(), c.Owner.GetName(), live.GetUID(), c.Owner.GetUID())
	}
	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("can't adopt: %s/%s has just been deleted at %v",
			c.Owner.GetNamespace(), c.Owner.GetName(), live.GetDeletionTimestamp())
	}
	return nil
}

func (c Claim[T]) adoption(child T) []byte {
	meta := map[string]any{
		"uid":             child.GetUID(),
		"ownerReferences": []metav1.OwnerReference{*metav1.NewControllerRef(c.Owner, c.OwnerGVK)},
	}
	if len(c.Finalizers) > 0 {
		meta["finalizers"] = c.Finalizers
	}
	return mustJSON(map[string]any{"metadata": meta})
}

func (c Claim[T]) release(ctx context.Context, child T) error {
	meta := map[string]any{
		"uid":             child.GetUID(),
		"ownerReferences": []map[string]any{{"$patch": "delete", "uid": c.Owner.GetUID()}},
	}
	if len(c.Finalizers) > 0 {
		meta["$deleteFromPrimitiveList/finalizers"] = c.Finalizers
	}
	err := c.Patch(ctx, child, mustJSON(map[string]any{"metadata": meta}))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		// Invalid: the child was replaced by another of the same name (its UID
		// differs), or the reference went meanwhile. Neither is ours any more.
		return nil
	}
	return err
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of strings and API types always encode
	}
	return b
}
