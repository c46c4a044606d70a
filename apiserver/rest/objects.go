package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/ownership"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/validation"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/store"
)

// Objects reads and writes the stored objects of one resource. It is used by
// all served versions and by subresources.
type Objects struct {
	Resource *registry.Resource
	Cache    *cacher.Cache
	server   *Server
	set      *cacher.Set
	store    store.Store
	codec    *StorageCodec
	chain    admission.Chain
	journey  journey.Recorder

	mayCreate func(ctx context.Context) error
	types     func() (managedfields.TypeConverter, error) // read when first needed
	compares  bool                                        // package ownership knows the kind
}

// key returns where the object is stored. A part that would escape its place is a NotFound.
func (o *Objects) key(namespace, name string) (string, error) {
	if name == "" || strings.ContainsAny(name, "/%") || name == "." || name == ".." || strings.ContainsAny(namespace, "/%") {
		return "", apierrors.NewNotFound(o.group(), name)
	}
	if !o.Resource.Namespaced {
		return cacher.Root + o.Resource.Prefix() + "/" + name, nil
	}
	if namespace == "" {
		return "", apierrors.NewBadRequest("an empty namespace may not be set when a resource name is provided")
	}
	return cacher.Root + o.Resource.Prefix() + "/" + namespace + "/" + name, nil
}

func (o *Objects) group() schema.GroupResource { return o.Resource.GVR.GroupResource() }

func metaOf(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// Get returns the current object: no older than the store at the time of the call.
func (o *Objects) Get(ctx context.Context, namespace, name string) (*cacher.Object, error) {
	key, err := o.key(namespace, name)
	if err != nil {
		return nil, err
	}
	if err := o.set.Sync(ctx); err != nil {
		return nil, storeError(err)
	}
	if obj := o.Cache.Get(key); obj != nil {
		return obj, nil
	}
	if err := o.server.config.Sealed.check(key); err != nil {
		return nil, err
	}
	return nil, apierrors.NewNotFound(o.group(), name)
}

// A Write says how an object is written.
type Write struct {
	Strategy    registry.Strategy // of the main resource or of a subresource
	Subresource string
	Options     runtime.Object // for admission
	DryRun      bool
	// Preconditions are checked against the current object.
	Preconditions *metav1.Preconditions
	// Apply says that field owners are what the write is about: they are kept at any price.
	Apply bool
	// Internal skips admission: the write was admitted as something else
	// (pods/binding changes the pod).
	Internal bool
	// CreateIfAbsent lets an update create, if the strategy allows it; Upsert does in any case.
	CreateIfAbsent bool
	Upsert         bool
}

func (o *Objects) attributes(ctx context.Context, op admission.Operation, w *Write, obj, old runtime.Object, namespace, name string) *admission.Attributes {
	a := &admission.Attributes{
		Operation: op, Resource: o.Resource.GVR, Subresource: w.Subresource, Kind: o.Resource.GVK(),
		Namespace: namespace, Name: name, Object: obj, Old: old, Options: w.Options, DryRun: w.DryRun,
	}
	if s := request.From(ctx); s != nil {
		a.User = s.User
		a.Request = o.asked(s.Info.GVR())
	}
	a.Forms, a.Authorizer = forms{o}, o.server.config.Authorizer
	about := old
	if obj != nil {
		obj.GetObjectKind().SetGroupVersionKind(o.Resource.GVK())
		about = obj
	}
	if about != nil && !w.DryRun {
		a.Record = func(step string, start time.Time, attrs ...string) {
			o.journey.Record(journey.Step("apiserver", step, o.Resource.Kind, metaOf(about), start).With(attrs...))
		}
	}
	return a
}

// Create stores a new object, which the caller gives away.
func (o *Objects) Create(ctx context.Context, obj runtime.Object, namespace string, w Write) (*cacher.Object, error) {
	start := time.Now()
	if s := request.From(ctx); s != nil && !s.Received.IsZero() {
		start = s.Received
	}
	meta := metaOf(obj)
	if err := o.place(meta, namespace); err != nil {
		return nil, err
	}
	generated := meta.Name == "" && meta.GenerateName != ""
	for attempt := 1; ; attempt++ {
		candidate := obj
		if generated {
			candidate = obj.DeepCopyObject()
			m := metaOf(candidate)
			m.Name = generateName(m.GenerateName)
		}
		created, err := o.create(ctx, candidate, w)
		if generated && apierrors.IsAlreadyExists(err) && attempt < 8 {
			continue
		}
		if err == nil && created.Rev != 0 {
			o.journey.Record(journey.Step("apiserver", "stored", o.Resource.Kind, created.Meta, start))
		}
		return created, err
	}
}

// place gives obj the namespace of its request.
func (o *Objects) place(meta *metav1.ObjectMeta, namespace string) error {
	if !o.Resource.Namespaced {
		meta.Namespace = ""
		return nil
	}
	if meta.Namespace == "" {
		meta.Namespace = namespace
	}
	if namespace == "" {
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	}
	if meta.Namespace != namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

func generateName(base string) string {
	const most = 63 - 5
	if len(base) > most {
		base = base[:most]
	}
	return base + rand.String(5)
}

func (o *Objects) create(ctx context.Context, obj runtime.Object, w Write) (*cacher.Object, error) {
	meta := metaOf(obj)
	s := w.Strategy
	s.Default(obj)
	meta.UID = uuid.NewUUID()
	meta.CreationTimestamp = metav1.NewTime(time.Now().UTC().Truncate(time.Second))
	meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = nil, nil
	meta.SelfLink = ""
	meta.Generation = 0
	if w.Internal {
		s.PrepareForCreate(ctx, obj)
	} else {
		a := o.attributes(ctx, admission.Create, &w, obj, nil, meta.Namespace, meta.Name)
		owners := meta.ManagedFields
		if err := o.chain.Admit(ctx, a); err != nil {
			return nil, forbidden(err, o.group(), meta.Name)
		}
		keepOwners(ctx, meta, owners)
		s.PrepareForCreate(ctx, obj)
		if err := o.validateCreate(ctx, obj, s); err != nil {
			return nil, err
		}
		if err := o.chain.Validate(ctx, a); err != nil {
			return nil, forbidden(err, o.group(), meta.Name)
		}
	}
	if meta.ResourceVersion != "" && !w.DryRun { // after admission, as upstream's store
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	o.warn(ctx, s, obj, nil)
	key, err := o.key(meta.Namespace, meta.Name)
	if err != nil {
		return nil, err
	}
	for {
		candidate := obj
		if o.Resource.Hooks.Claims != nil {
			candidate = obj.DeepCopyObject()
		}
		out, err := o.insert(ctx, key, candidate, w)
		var taken *contested
		if !errors.As(err, &taken) {
			return out, err
		}
		o.Resource.Hooks.Claims.Taken(taken.claim)
	}
}

// insert stores a new object that is valid, with what it takes. The error is of type
// *contested when somebody else has taken it.
func (o *Objects) insert(ctx context.Context, key string, obj runtime.Object, w Write) (*cacher.Object, error) {
	meta := metaOf(obj)
	finish := func(bool) {}
	if begin := o.Resource.Hooks.BeginCreate; begin != nil {
		var err error
		if finish, err = begin(ctx, obj, w.DryRun); err != nil {
			return nil, err
		}
	}
	stored, doubt := false, false
	defer func() {
		if !doubt {
			finish(stored)
		}
	}()

	value, err := o.codec.Encode(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if w.DryRun {
		if o.Cache.Get(key) != nil {
			return nil, apierrors.NewAlreadyExists(o.group(), meta.Name)
		}
		return &cacher.Object{Obj: obj, Meta: meta, Key: key}, nil
	}
	c := o.claims(obj, nil)
	p, rev, err := o.write(&w, key, value, obj, func(value []byte) (int64, error) {
		if c != nil {
			return c.commit(ctx, key, value, 0)
		}
		return o.store.Create(ctx, key, value)
	})
	if err != nil {
		var exists *store.ConflictError // by a transaction
		var taken *contested
		switch doubt = doubtful(err); {
		case errors.Is(err, store.ErrExists), errors.As(err, &exists):
			return nil, o.existsError(key, meta.Name)
		case errors.As(err, &taken):
			return nil, err
		}
		return nil, storeError(err)
	}
	stored = true
	return o.await(ctx, p, rev)
}

// write announces a write to the cache and does it. An object that is too large is
// tried once more without the owners of its fields, as upstream.
func (o *Objects) write(w *Write, key string, value []byte, obj runtime.Object, do func(value []byte) (int64, error)) (*cacher.Pending, int64, error) {
	p := o.Cache.Expect(key, value, obj)
	rev, err := do(value)
	if err == nil {
		return p, rev, nil
	}
	o.Cache.Forget(key, p)
	if meta := metaOf(obj); errors.Is(err, store.ErrTooLarge) && !w.Apply && len(meta.ManagedFields) > 0 {
		meta.ManagedFields = nil
		smaller, encodeErr := o.codec.Encode(obj)
		if encodeErr != nil {
			return nil, 0, encodeErr
		}
		return o.write(w, key, smaller, obj, do)
	}
	return nil, 0, err
}

// existsError tells a name that is free soon from one that is taken.
func (o *Objects) existsError(key, name string) error {
	err := apierrors.NewAlreadyExists(o.group(), name)
	if current := o.Cache.Get(key); current != nil && current.Meta.GetDeletionTimestamp() != nil {
		err.ErrStatus.Message = fmt.Sprintf("object is being deleted: %s", err.ErrStatus.Message)
	}
	return err
}

// await returns the cached object of a write that was stored at rev.
func (o *Objects) await(ctx context.Context, p *cacher.Pending, rev int64) (*cacher.Object, error) {
	select {
	case obj := <-p.Done():
		if obj == nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("the object stored at revision %d could not be read back", rev))
		}
		return obj, nil
	case <-ctx.Done():
		return nil, storeError(ctx.Err())
	}
}

func (o *Objects) validateCreate(ctx context.Context, obj runtime.Object, s registry.Strategy) error {
	meta := metaOf(obj)
	var errs field.ErrorList
	if o.Resource.JSONOnly {
		errs = apivalidation.ValidateObjectMeta(meta, o.Resource.Namespaced, s.ValidateName, field.NewPath("metadata"))
	} else {
		errs = validation.ObjectMeta(meta, o.Resource.Namespaced, s.ValidateName)
	}
	errs = append(errs, s.Validate(ctx, obj)...)
	return o.invalid(meta, errs)
}

func (o *Objects) invalid(meta *metav1.ObjectMeta, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	name := meta.Name
	if name == "" {
		name = meta.GenerateName
	}
	errs, left := bounded(errs)
	out := apierrors.NewInvalid(o.Resource.GVK().GroupKind(), name, unique(validation.UpstreamValues(errs)))
	if left > 0 {
		out.ErrStatus.Message += fmt.Sprintf(" (and %d more errors)", left)
	}
	return out
}

// unique drops errors that say the same about the same field.
func unique(errs field.ErrorList) field.ErrorList {
	seen := map[string]bool{}
	out := errs[:0]
	for _, e := range errs {
		if s := e.Error(); !seen[s] {
			seen[s] = true
			out = append(out, e)
		}
	}
	return out
}

func (o *Objects) warn(ctx context.Context, s registry.Strategy, obj, old runtime.Object) {
	for _, w := range s.Warnings(ctx, obj, old) {
		request.Warn(ctx, w)
	}
}

// A Change computes the wanted object from the current one, which it must not
// modify. It is called again when another writer was faster.
type Change func(current runtime.Object) (runtime.Object, error)

// Update changes an object. When the change names a resourceVersion other than
// the current one the answer is a conflict; otherwise it is repeated on the newer object.
func (o *Objects) Update(ctx context.Context, namespace, name string, change Change, w Write) (obj *cacher.Object, created bool, err error) {
	key, err := o.key(namespace, name)
	if err != nil {
		return nil, false, err
	}
	current := o.Cache.Get(key)
	if current == nil {
		// The cache may be behind a creation by another server.
		if err := o.set.Sync(ctx); err != nil {
			return nil, false, storeError(err)
		}
		current = o.Cache.Get(key)
	}
	for {
		if current == nil {
			if !w.Upsert && (!w.CreateIfAbsent || !w.Strategy.Traits().CreateOnUpdate) {
				return nil, false, apierrors.NewNotFound(o.group(), name)
			}
			if o.mayCreate != nil && !w.Internal {
				if err := o.mayCreate(ctx); err != nil {
					return nil, false, err
				}
			}
			wanted, err := change(o.Resource.New())
			if err != nil {
				return nil, false, err
			}
			metaOf(wanted).ResourceVersion = ""
			obj, err = o.Create(ctx, wanted, namespace, w)
			if w.Upsert && apierrors.IsAlreadyExists(err) && o.Cache.Get(key) != nil {
				current = o.Cache.Get(key) // another writer was faster
				continue
			}
			return obj, true, err
		}
		obj, err := o.updateOnce(ctx, key, current, change, w)
		var conflict *store.ConflictError
		if !errors.As(err, &conflict) {
			return obj, false, err
		}
		// The cache shows every change sooner or later: wait for the one that was in the way.
		if conflict.Current.Mod == 0 {
			if err := o.set.Sync(ctx); err != nil {
				return nil, false, storeError(err)
			}
		} else if err := o.set.Wait(ctx, conflict.Current.Mod); err != nil {
			return nil, false, storeError(err)
		}
		current = o.Cache.Get(key)
	}
}

func (o *Objects) updateOnce(ctx context.Context, key string, current *cacher.Object, change Change, w Write) (*cacher.Object, error) {
	before, err := o.hub(current.Obj)
	if err != nil {
		return nil, err
	}
	obj, err := change(before)
	if err != nil {
		return nil, err
	}
	meta, old := metaOf(obj), metaOf(before)
	if err := o.checkVersion(meta, old, w); err != nil {
		return nil, err
	}
	if err := checkPreconditions(w.Preconditions, current.Meta, o.group()); err != nil {
		return nil, err
	}
	s := w.Strategy
	s.Default(obj)
	keepSystemFields(meta, old)
	if w.Internal {
		ownership.Share(meta.ManagedFields) // obj is a copy of the current one
		s.PrepareForUpdate(ctx, obj, before)
	} else {
		a := o.attributes(ctx, admission.Update, &w, obj, before, old.Namespace, old.Name)
		owners := meta.ManagedFields
		if err := o.chain.Admit(ctx, a); err != nil {
			return nil, forbidden(err, o.group(), old.Name)
		}
		keepOwners(ctx, meta, owners)
		s.PrepareForUpdate(ctx, obj, before)
		var errs field.ErrorList
		if o.Resource.JSONOnly {
			errs = apivalidation.ValidateObjectMetaUpdate(meta, old, field.NewPath("metadata"))
		} else {
			errs = validation.ObjectMetaUpdate(meta, old, o.Resource.Namespaced)
		}
		errs = append(errs, s.ValidateUpdate(ctx, obj, before)...)
		if err := o.invalid(meta, errs); err != nil {
			return nil, err
		}
		if err := o.chain.Validate(ctx, a); err != nil {
			return nil, forbidden(err, o.group(), old.Name)
		}
	}
	o.warn(ctx, s, obj, before)
	for {
		candidate := obj
		if o.Resource.Hooks.Claims != nil {
			candidate = obj.DeepCopyObject()
		}
		out, err := o.replace(ctx, key, candidate, before, current, w)
		var taken *contested
		if !errors.As(err, &taken) {
			return out, err
		}
		o.Resource.Hooks.Claims.Taken(taken.claim)
	}
}

// replace stores a changed object that is valid, with what it takes. The error is of
// type *contested when somebody else has taken it.
func (o *Objects) replace(ctx context.Context, key string, obj, before runtime.Object, current *cacher.Object, w Write) (*cacher.Object, error) {
	meta, old := metaOf(obj), metaOf(before)
	finish := func(bool) {}
	if begin := o.Resource.Hooks.BeginUpdate; begin != nil {
		var err error
		if finish, err = begin(ctx, obj, before, w.DryRun); err != nil {
			return nil, err
		}
	}
	stored, doubt := false, false
	defer func() {
		if !doubt {
			finish(stored)
		}
	}()

	meta.ResourceVersion = ""
	if meta.DeletionTimestamp != nil && !held(obj) {
		if w.DryRun {
			return &cacher.Object{Obj: obj, Meta: meta, Key: key}, nil
		}
		if _, err := o.remove(ctx, key, current); err != nil {
			doubt = doubtful(err)
			return nil, err
		}
		stored = true
		// The answer is what the client asked for, not what was there before.
		meta.ResourceVersion = old.ResourceVersion
		obj.GetObjectKind().SetGroupVersionKind(o.Resource.GVK())
		return &cacher.Object{Obj: obj, Meta: meta, Key: key}, nil
	}
	value, err := o.codec.Encode(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if len(value) == len(current.Stored()) && !bytes.Equal(value, current.Stored()) && onlyTimesDiffer(meta.ManagedFields, old.ManagedFields) {
		// A change of nothing but times is none. Times have all the same length.
		kept := meta.ManagedFields
		meta.ManagedFields = old.ManagedFields
		if same, err := o.codec.Encode(obj); err == nil && bytes.Equal(same, current.Stored()) {
			value = same
		}
		meta.ManagedFields = kept
	}
	if bytes.Equal(value, current.Stored()) && !o.server.config.Sealed.stale(ctx, key) {
		return current, nil // nothing changes: nothing is written
	}
	if w.DryRun {
		meta.ResourceVersion = old.ResourceVersion
		return &cacher.Object{Obj: obj, Meta: meta, Key: key}, nil
	}
	c := o.claims(obj, before)
	p, rev, err := o.write(&w, key, value, obj, func(value []byte) (int64, error) {
		if c != nil {
			return c.commit(ctx, key, value, current.Rev)
		}
		return o.store.Update(ctx, key, value, current.Rev)
	})
	if err != nil {
		var taken *contested
		if doubt = doubtful(err); errors.As(err, &taken) {
			return nil, err
		}
		return nil, storeError(err)
	}
	stored = true
	return o.await(ctx, p, rev)
}

// checkVersion compares the resourceVersion that the client saw.
func (o *Objects) checkVersion(meta, old *metav1.ObjectMeta, w Write) error {
	if meta.ResourceVersion == "" {
		if w.Strategy.Traits().NoUnconditionalUpdate {
			return apierrors.NewInvalid(o.Resource.GVK().GroupKind(), old.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), meta.ResourceVersion, "must be specified for an update")})
		}
		// Validation is told that the client means the newest version.
		meta.ResourceVersion = old.ResourceVersion
		return nil
	}
	if meta.ResourceVersion != old.ResourceVersion {
		return apierrors.NewConflict(o.group(), old.Name, errors.New(staleMessage))
	}
	return nil
}

const staleMessage = "the object has been modified; please apply your changes to the latest version and try again"

// keepSystemFields restores what no client may change.
func keepSystemFields(meta, old *metav1.ObjectMeta) {
	if meta.UID == "" {
		meta.UID = old.UID
	}
	if meta.Namespace == "" {
		meta.Namespace = old.Namespace
	}
	meta.CreationTimestamp = old.CreationTimestamp
	meta.SelfLink = ""
	meta.Generation = old.Generation
	if meta.GenerateName == "" {
		meta.GenerateName = old.GenerateName
	}
	if old.DeletionTimestamp != nil && meta.DeletionTimestamp == nil {
		meta.DeletionTimestamp = old.DeletionTimestamp
	}
	if old.DeletionGracePeriodSeconds != nil && meta.DeletionGracePeriodSeconds == nil {
		meta.DeletionGracePeriodSeconds = old.DeletionGracePeriodSeconds
	}
	if old.DeletionTimestamp == nil {
		meta.DeletionTimestamp, meta.DeletionGracePeriodSeconds = nil, nil
	}
}

func checkPreconditions(p *metav1.Preconditions, meta metav1.Object, gr schema.GroupResource) error {
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != meta.GetUID() {
		return apierrors.NewConflict(gr, meta.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, meta.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != meta.GetResourceVersion() {
		return apierrors.NewConflict(gr, meta.GetName(), fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, meta.GetResourceVersion()))
	}
	return nil
}

// forbidden turns a plug-in's refusal into an API error.
func forbidden(err error, gr schema.GroupResource, name string) error {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		return err
	}
	return apierrors.NewForbidden(gr, name, err)
}
