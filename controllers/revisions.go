package controllers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// revisionHash is the label of revisions with the hash of their content.
const revisionHash = "controller.kubernetes.io/hash"

// Revisions keeps the history of an owner's pod template as ControllerRevisions,
// for StatefulSets and DaemonSets.
type Revisions struct {
	Client kubernetes.Interface
	Index  cache.Indexer // of ControllerRevisions, with IndexByController
	Kind   schema.GroupVersionKind
	// HashLabel is the label with the hash of a revision's content; by default that of
	// StatefulSets, controller.kubernetes.io/hash.
	HashLabel string
}

// TemplateData is what a revision of a pod template holds: a patch that puts the
// template in place, as upstream stores it.
func TemplateData(template *corev1.PodTemplateSpec) ([]byte, error) {
	plain, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	var content map[string]any
	if err := json.Unmarshal(plain, &content); err != nil {
		return nil, err
	}
	content["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": content}})
}

// TemplateOf reads the template that a revision holds.
func TemplateOf(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var data struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return nil, fmt.Errorf("revision %s: %w", r.Name, err)
	}
	return &data.Spec.Template, nil
}

// List returns the owner's revisions, oldest first.
func (h Revisions) List(owner metav1.Object) []*appsv1.ControllerRevision {
	list := Children[*appsv1.ControllerRevision](h.Index, owner.GetUID())
	slices.SortFunc(list, func(a, b *appsv1.ControllerRevision) int {
		if a.Revision != b.Revision {
			return cmp.Compare(a.Revision, b.Revision)
		}
		if n := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); n != 0 {
			return n
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return list
}

// Current returns the revision of the owner's template as it is now: a new one, or
// an earlier one, which becomes the newest. collisions counts hashes that met.
func (h Revisions) Current(ctx context.Context, owner metav1.Object, template *corev1.PodTemplateSpec, list []*appsv1.ControllerRevision, collisions *int32) (*appsv1.ControllerRevision, error) {
	data, err := TemplateData(template)
	if err != nil {
		return nil, err
	}
	next := int64(1)
	if len(list) > 0 {
		next = list[len(list)-1].Revision + 1
	}
	for i, l := range slices.Backward(list) {
		if !bytes.Equal(l.Data.Raw, data) {
			continue
		}
		if i == len(list)-1 {
			return l, nil
		}
		again := l.DeepCopy() // a rollback
		again.Revision = next
		return h.Client.AppsV1().ControllerRevisions(again.Namespace).Update(ctx, again, metav1.UpdateOptions{})
	}
	return h.create(ctx, owner, template, data, next, collisions)
}

func (h Revisions) create(ctx context.Context, owner metav1.Object, template *corev1.PodTemplateSpec, data []byte, number int64, collisions *int32) (*appsv1.ControllerRevision, error) {
	r := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.GetNamespace(), Labels: maps.Clone(template.Labels), Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, h.Kind)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
	for k, v := range owner.GetAnnotations() {
		if k != corev1.LastAppliedConfigAnnotation {
			r.Annotations[k] = v
		}
	}
	if r.Labels == nil {
		r.Labels = map[string]string{}
	}
	for {
		hash := dataHash(data, collisions)
		r.Labels[cmp.Or(h.HashLabel, revisionHash)] = hash
		prefix := owner.GetName()
		if len(prefix) > 223 {
			prefix = prefix[:223]
		}
		r.Name = prefix + "-" + hash
		made, err := h.Client.AppsV1().ControllerRevisions(r.Namespace).Create(ctx, r, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
		have, err := h.Client.AppsV1().ControllerRevisions(r.Namespace).Get(ctx, r.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if bytes.Equal(have.Data.Raw, data) && metav1.IsControlledBy(have, owner) {
			return have, nil // made before, by us
		}
		*collisions++
	}
}

func dataHash(data []byte, collisions *int32) string {
	f := fnv.New32()
	_, _ = f.Write(data)
	if collisions != nil {
		_, _ = f.Write([]byte(strconv.FormatInt(int64(*collisions), 10)))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(f.Sum32()), 10))
}

// Prune deletes the oldest revisions beyond limit that are not in use.
func (h Revisions) Prune(ctx context.Context, list []*appsv1.ControllerRevision, inUse func(*appsv1.ControllerRevision) bool, limit int32) error {
	var old []*appsv1.ControllerRevision
	for _, r := range list {
		if !inUse(r) {
			old = append(old, r)
		}
	}
	for _, r := range old[:max(0, len(old)-int(limit))] {
		uid := r.UID
		err := h.Client.AppsV1().ControllerRevisions(r.Namespace).Delete(ctx, r.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}
