package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/store"
)

// held reports whether something keeps an object that is marked for deletion:
// finalizers, a grace period, or a namespace's own finalizers.
func held(obj runtime.Object) bool {
	meta := metaOf(obj)
	if len(meta.Finalizers) > 0 {
		return true
	}
	if g := meta.DeletionGracePeriodSeconds; g != nil && *g > 0 {
		return true
	}
	ns, ok := obj.(*corev1.Namespace)
	return ok && len(ns.Spec.Finalizers) > 0
}

// Delete removes an object or marks it for deletion (immediate is then false).
// The result is the last state.
func (o *Objects) Delete(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) (last *cacher.Object, immediate bool, err error) {
	return o.delete(ctx, namespace, name, options, o.chain)
}

// Purge is Delete by the server itself, which no admission plug-in is asked about.
func (o *Objects) Purge(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) error {
	_, _, err := o.delete(ctx, namespace, name, options, nil)
	return err
}

func (o *Objects) delete(ctx context.Context, namespace, name string, options *metav1.DeleteOptions, chain admission.Chain) (last *cacher.Object, immediate bool, err error) {
	key, err := o.key(namespace, name)
	if err != nil {
		return nil, false, err
	}
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, false, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	dry := len(options.DryRun) > 0
	start := time.Now()
	for {
		if err := o.set.Sync(ctx); err != nil {
			return nil, false, storeError(err)
		}
		current := o.Cache.Get(key)
		if current == nil {
			return nil, false, apierrors.NewNotFound(o.group(), name)
		}
		last, immediate, err = o.deleteOnce(ctx, key, current, options.DeepCopy(), dry, chain)
		var conflict *store.ConflictError
		if errors.As(err, &conflict) {
			if conflict.Current.Mod != 0 {
				if err := o.set.Wait(ctx, conflict.Current.Mod); err != nil {
					return nil, false, storeError(err)
				}
			}
			continue
		}
		if err == nil && !dry {
			step := "marked for deletion"
			if immediate {
				step = "deleted"
			}
			o.journey.Record(journey.Step("apiserver", step, o.Resource.Kind, last.Meta, start))
		}
		return last, immediate, err
	}
}

func (o *Objects) deleteOnce(ctx context.Context, key string, current *cacher.Object, options *metav1.DeleteOptions, dry bool, chain admission.Chain) (*cacher.Object, bool, error) {
	if err := checkPreconditions(options.Preconditions, current.Meta, o.group()); err != nil {
		return nil, false, err
	}
	w := Write{Options: options, DryRun: dry}
	before, err := o.hub(current.Obj)
	if err != nil && (chain != nil || held(current.Obj)) {
		return nil, false, err
	} else if err != nil {
		before = current.Obj // only its metadata matters
	}
	a := o.attributes(ctx, admission.Delete, &w, nil, before, current.Meta.GetNamespace(), current.Meta.GetName())
	if err := chain.Admit(ctx, a); err != nil {
		return nil, false, forbidden(err, o.group(), a.Name)
	}
	if err := chain.Validate(ctx, a); err != nil {
		return nil, false, forbidden(err, o.group(), a.Name)
	}
	graceful := o.Resource.Graceful != nil && o.Resource.Graceful(ctx, before, options)
	marked := o.mark(before, options, graceful)
	if !held(marked) {
		if dry {
			return current, true, nil
		}
		last, err := o.remove(ctx, key, current)
		return last, true, err
	}
	value, err := o.codec.Encode(marked)
	if err != nil {
		return nil, false, apierrors.NewInternalError(err)
	}
	if dry || string(value) == string(current.Stored()) {
		return current, false, nil
	}
	p := o.Cache.Expect(key, value, marked)
	rev, err := o.store.Update(ctx, key, value, current.Rev)
	if err != nil {
		o.Cache.Forget(key, p)
		return nil, false, storeError(err)
	}
	last, err := o.await(ctx, p, rev)
	return last, false, err
}

// mark returns a copy with the deletion time, the grace period and the
// finalizers of the wanted propagation.
func (o *Objects) mark(current runtime.Object, options *metav1.DeleteOptions, graceful bool) runtime.Object {
	obj := current.DeepCopyObject()
	meta := metaOf(obj)
	meta.ResourceVersion = ""
	var grace int64
	if graceful && options.GracePeriodSeconds != nil {
		grace = *options.GracePeriodSeconds
	}
	switch {
	case meta.DeletionTimestamp == nil:
		if o.Resource.Marked != nil {
			o.Resource.Marked(obj)
		}
		until := metav1.NewTime(time.Now().UTC().Add(time.Duration(grace) * time.Second).Truncate(time.Second))
		meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = &until, &grace
		if meta.Generation > 0 {
			meta.Generation++
		}
	case meta.DeletionGracePeriodSeconds == nil || grace < *meta.DeletionGracePeriodSeconds:
		// A second deletion may only shorten the grace period.
		before := int64(0)
		if meta.DeletionGracePeriodSeconds != nil {
			before = *meta.DeletionGracePeriodSeconds
		}
		until := metav1.NewTime(meta.DeletionTimestamp.Add(time.Duration(grace-before) * time.Second))
		meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = &until, &grace
	}
	o.setPropagation(meta, options)
	if ns, ok := obj.(*corev1.Namespace); ok {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
	return obj
}

// setPropagation adds the finalizer that asks the garbage collector for
// foreground deletion or orphaning, and drops the other one. What the options do not
// say, a finalizer of the object says, and then its kind.
func (o *Objects) setPropagation(meta *metav1.ObjectMeta, options *metav1.DeleteOptions) {
	wanted := ""
	switch {
	case o.Resource.Dependents == registry.NoDependents:
	case options.PropagationPolicy != nil:
		switch *options.PropagationPolicy {
		case metav1.DeletePropagationForeground:
			wanted = metav1.FinalizerDeleteDependents
		case metav1.DeletePropagationOrphan:
			wanted = metav1.FinalizerOrphanDependents
		}
	case options.OrphanDependents != nil: //nolint:staticcheck // old clients still send orphanDependents
		if *options.OrphanDependents { //nolint:staticcheck // see above
			wanted = metav1.FinalizerOrphanDependents
		}
	case o.Resource.Dependents != registry.OrphanDependents || slices.ContainsFunc(meta.Finalizers, forCollector):
		return
	default:
		wanted = metav1.FinalizerOrphanDependents
	}
	meta.Finalizers = slices.DeleteFunc(meta.Finalizers, forCollector)
	if wanted != "" {
		meta.Finalizers = append(meta.Finalizers, wanted)
	}
	if len(meta.Finalizers) == 0 {
		meta.Finalizers = nil
	}
}

// unsaid reports whether a deletion leaves open what becomes of dependents.
func unsaid(options *metav1.DeleteOptions) bool {
	return options.PropagationPolicy == nil && options.OrphanDependents == nil //nolint:staticcheck // see above
}

// forCollector reports whether a finalizer is the garbage collector's.
func forCollector(f string) bool {
	return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
}

// remove deletes the key of current from the store.
func (o *Objects) remove(ctx context.Context, key string, current *cacher.Object) (*cacher.Object, error) {
	var rev int64
	var err error
	if c := o.claims(nil, current.Obj); c != nil {
		rev, err = c.commit(ctx, key, nil, current.Rev)
	} else {
		rev, err = o.store.Delete(ctx, key, current.Rev)
	}
	if err != nil {
		return nil, storeError(err)
	}
	if o.Resource.Hooks.AfterDelete != nil {
		o.Resource.Hooks.AfterDelete(ctx, current.Obj)
	}
	if err := o.set.Wait(ctx, rev); err != nil {
		return nil, storeError(err)
	}
	return current, nil
}

// Expire deletes an object for its age, if it is still as current is.
func (o *Objects) Expire(ctx context.Context, current *cacher.Object) error {
	_, err := o.remove(ctx, current.Key, current)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return nil // it changed, or another server was faster
	}
	return err
}

// delete serves DELETE of one object.
func (e *endpoint) delete(w http.ResponseWriter, r *http.Request, c *call) error {
	options, err := e.deleteOptions(w, r)
	if err != nil {
		return err
	}
	e.warnDeletion(r, options)
	last, immediate, err := e.objects.Delete(r.Context(), c.info.Namespace, c.info.Name, options)
	if err != nil {
		return err
	}
	if !immediate {
		// Marked: the answer is the object, with 200 as upstream answers since 1.8.
		return e.writeObject(w, r, c, http.StatusOK, last)
	}
	if o := e.objects.Resource; o.Graceful != nil {
		return e.writeObject(w, r, c, http.StatusOK, last)
	}
	e.server.codecs.WriteObject(w, r, http.StatusOK, &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: last.Meta.GetName(), Group: e.gvr.Group, Kind: e.gvr.Resource, UID: last.Meta.GetUID()},
	})
	return nil
}

// deleteOptions reads the options from the body, else from the query.
func (e *endpoint) deleteOptions(w http.ResponseWriter, r *http.Request) (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	body, err := readBody(w, r)
	if err != nil {
		return nil, err
	}
	if len(body) == 0 {
		return options, decodeOptions(r.URL.Query(), options)
	}
	if err := e.server.codecs.decodeOptionsBody(r, body, options); err != nil {
		return nil, err
	}
	e.server.codecs.auditRequest(r, options)
	return options, nil
}

// warnDeletion tells who deletes what its kind has to say, if the options leave it open.
func (e *endpoint) warnDeletion(r *http.Request, options *metav1.DeleteOptions) {
	if text := e.objects.Resource.DeletionWarning; text != "" && unsaid(options) {
		request.Warn(r.Context(), text)
	}
}

// deleteCollection serves DELETE of all objects that match the selectors.
func (e *endpoint) deleteCollection(w http.ResponseWriter, r *http.Request, c *call) error {
	query, err := e.listQuery(r, c)
	if err != nil {
		return err
	}
	options, err := e.deleteOptions(w, r)
	if err != nil {
		return err
	}
	e.warnDeletion(r, options)
	list, err := e.collect(r.Context(), query)
	if err != nil {
		return err
	}
	for _, obj := range list.items {
		_, _, err := e.objects.Delete(r.Context(), obj.Meta.GetNamespace(), obj.Meta.GetName(), options.DeepCopy())
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return e.writeList(w, r, c, list)
}
