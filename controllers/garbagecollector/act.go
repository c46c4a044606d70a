package garbagecollector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/controllers"
)

func (c *collector) api(o object) metadata.ResourceInterface {
	if o.resource.Namespaced {
		return c.Metadata.Resource(o.resource.GVR).Namespace(o.namespace)
	}
	return c.Metadata.Resource(o.resource.GVR)
}

// live reads an object; nil means that it is gone (or another has its name).
func (c *collector) live(ctx context.Context, o object) (*metav1.PartialObjectMetadata, error) {
	m, err := c.api(o).Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case m.UID != o.uid:
		return nil, nil
	}
	return m, nil
}

// exists looks an owner up on the server.
func (c *collector) exists(ctx context.Context, ref metav1.OwnerReference, namespace string) (ownerState, error) {
	r, ok := c.graph.kind(ref)
	if !ok {
		// A kind that nobody serves (any more, or yet): the object may exist, so
		// nothing is deleted. New kinds wake the virtual owners again.
		return ownerSolid, nil
	}
	o := object{resource: r, name: ref.Name, uid: ref.UID}
	if r.Namespaced {
		if namespace == "" {
			c.Log.Debug("cluster-scoped object refers to a namespaced owner", base.KeyKind, ref.Kind, base.KeyName, ref.Name)
			return ownerSolid, nil
		}
		o.namespace = namespace
	}
	m, err := c.live(ctx, o)
	switch {
	case err != nil:
		return ownerUnknown, err
	case m == nil:
		c.graph.setAbsent(ref.UID, namespace)
		return ownerAbsent, nil
	case m.DeletionTimestamp != nil && slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents):
		return ownerWaiting, nil
	}
	return ownerSolid, nil
}

// judge decides about an object by its owners.
func (c *collector) judge(ctx context.Context, v view) error {
	m, err := c.live(ctx, v.object)
	if err != nil {
		return err
	}
	if m == nil {
		c.enqueue(c.graph.gone(v.uid)) // its event is on the way
		return nil
	}
	if len(m.OwnerReferences) == 0 || m.DeletionTimestamp != nil {
		return nil
	}
	var solid, dangling, waiting []metav1.OwnerReference
	unseen := false // an owner exists that the graph has not been told of
	for _, ref := range m.OwnerReferences {
		state := c.graph.owner(ref, v.namespace)
		if state == ownerUnknown || state == ownerMismatch {
			if state, err = c.exists(ctx, ref, v.namespace); err != nil {
				return err
			}
			if _, known := c.graph.kind(ref); known && state == ownerSolid {
				unseen = true
			}
			if state == ownerAbsent && c.graph.owner(ref, v.namespace) == ownerMismatch {
				c.complain(v, ref)
			}
		}
		switch state {
		case ownerAbsent:
			dangling = append(dangling, ref)
		case ownerWaiting:
			waiting = append(waiting, ref)
		default:
			solid = append(solid, ref)
		}
	}
	switch {
	case unseen:
		// It may go before its first event arrives: then nobody would come back here.
		return controllers.ErrStale
	case len(dangling) == 0 && len(waiting) == 0:
		return nil
	case len(solid) > 0:
		return c.setOwners(ctx, v.object, m, solid)
	}
	policy := metav1.DeletePropagationBackground
	if len(waiting) > 0 && len(v.dependents) > 0 {
		// The owner waits for all that hangs on it: this one's dependents too. A
		// circle of blocking references would wait for ever, so a dependent that
		// waits already gives way.
		for _, d := range v.dependents {
			if d.deleting && d.foreground {
				if m, err = c.unblock(ctx, v.object, m); err != nil {
					return err
				}
				break
			}
		}
		policy = metav1.DeletePropagationForeground
	} else {
		switch {
		case slices.Contains(m.Finalizers, metav1.FinalizerOrphanDependents):
			policy = metav1.DeletePropagationOrphan
		case slices.Contains(m.Finalizers, metav1.FinalizerDeleteDependents):
			policy = metav1.DeletePropagationForeground
		}
	}
	return c.remove(ctx, v.object, m, policy)
}

func (c *collector) remove(ctx context.Context, o object, m *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) error {
	options := metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion},
	}
	if m.ResourceVersion == "" {
		options.Preconditions.ResourceVersion = nil
	}
	err := c.api(o).Delete(ctx, o.name, options)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		c.Log.Debug("object without owners deleted", base.KeyKind, o.resource.Kind, base.KeyNamespace, o.namespace, base.KeyName, o.name)
	}
	return err
}

// complain tells with an event that an owner reference points nowhere.
func (c *collector) complain(v view, ref metav1.OwnerReference) {
	about := &corev1.ObjectReference{
		APIVersion: v.resource.GVR.GroupVersion().String(), Kind: v.resource.Kind,
		Namespace: v.namespace, Name: v.name, UID: v.uid,
	}
	c.Recorder.Eventf(about, corev1.EventTypeWarning, "OwnerRefInvalidNamespace",
		"ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
		ref.APIVersion, ref.Kind, v.namespace, ref.Name, ref.UID, v.namespace)
}

// orphan takes the references to v off its dependents and then lets it go.
func (c *collector) orphan(ctx context.Context, v view) error {
	var errs []error
	for _, d := range v.dependents {
		errs = append(errs, c.disown(ctx, d.object, v.uid))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("orphaning dependents of %s %s: %w", v.resource.Kind, v.name, err)
	}
	return c.dropFinalizer(ctx, v.object, metav1.FinalizerOrphanDependents)
}

// foreground deletes v's dependents, and lets v go when none is left that blocks.
// Each dependent that goes brings v back here.
func (c *collector) foreground(ctx context.Context, v view) error {
	blocked := false
	for _, d := range v.dependents {
		blocked = blocked || d.blocks
		if !d.deleting {
			c.Queue.Add(controllers.Key{Name: string(d.uid)})
		}
	}
	if blocked {
		return nil
	}
	return c.dropFinalizer(ctx, v.object, metav1.FinalizerDeleteDependents)
}

func (c *collector) disown(ctx context.Context, o object, owner types.UID) error {
	m, err := c.live(ctx, o)
	if err != nil || m == nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(m.OwnerReferences), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
	if len(kept) == len(m.OwnerReferences) {
		return nil
	}
	return c.setOwners(ctx, o, m, kept)
}

func (c *collector) setOwners(ctx context.Context, o object, m *metav1.PartialObjectMetadata, owners []metav1.OwnerReference) error {
	if owners == nil {
		owners = []metav1.OwnerReference{}
	}
	_, err := c.patch(ctx, o, m, map[string]any{"ownerReferences": owners})
	return err
}

// unblock makes an object's references stop blocking its owners.
func (c *collector) unblock(ctx context.Context, o object, m *metav1.PartialObjectMetadata) (*metav1.PartialObjectMetadata, error) {
	owners := slices.Clone(m.OwnerReferences)
	no := false
	for i := range owners {
		owners[i].BlockOwnerDeletion = &no
	}
	return c.patch(ctx, o, m, map[string]any{"ownerReferences": owners})
}

func (c *collector) dropFinalizer(ctx context.Context, o object, finalizer string) error {
	m, err := c.live(ctx, o)
	if err != nil || m == nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(m.Finalizers), func(f string) bool { return f == finalizer })
	if len(kept) == len(m.Finalizers) {
		return nil
	}
	if kept == nil {
		kept = []string{}
	}
	_, err = c.patch(ctx, o, m, map[string]any{"finalizers": kept})
	return err
}

// patch changes metadata of the very object that was read, or fails with a conflict.
func (c *collector) patch(ctx context.Context, o object, m *metav1.PartialObjectMetadata, meta map[string]any) (*metav1.PartialObjectMetadata, error) {
	meta["uid"] = m.UID
	if m.ResourceVersion != "" {
		meta["resourceVersion"] = m.ResourceVersion
	}
	body, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, err
	}
	out, err := c.api(o).Patch(ctx, o.name, types.MergePatchType, body, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return m, nil
	}
	return out, err
}
