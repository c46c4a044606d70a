package rest

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/journey"
)

// decode reads the request's object and turns it into the stored version; shown is
// what was read.
func (e *endpoint) decode(w http.ResponseWriter, r *http.Request, validation string) (obj, shown runtime.Object, err error) {
	validation = fieldValidation(validation)
	body, err := readBody(w, r)
	if err != nil {
		return nil, nil, err
	}
	shown, err = e.server.codecs.decodeBody(r, body, e.gvk, e.new(), validation)
	if err != nil {
		return nil, nil, err
	}
	e.server.codecs.auditRequest(r, shown)
	obj, err = e.stored(shown)
	return obj, shown, err
}

func (e *endpoint) new() runtime.Object {
	if e.also != nil {
		return e.also.New()
	}
	return e.objects.Resource.New()
}

// stored turns an object of the endpoint's version into the stored version.
func (e *endpoint) stored(obj runtime.Object) (runtime.Object, error) {
	if e.also == nil {
		return obj, nil
	}
	out, err := e.also.To(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s cannot be converted: %v", e.gvk, err))
	}
	return out, nil
}

// create serves POST to a collection.
func (e *endpoint) create(w http.ResponseWriter, r *http.Request, c *call) error {
	options := &metav1.CreateOptions{}
	if err := decodeOptions(r.URL.Query(), options); err != nil {
		return err
	}
	dry := len(options.DryRun) > 0
	obj, shown, err := e.decode(w, r, options.FieldValidation)
	if err != nil {
		return err
	}
	meta := metaOf(obj)
	joinTrace(meta, r)
	if e.objects.Resource.Namespaced && c.info.Namespace == "" {
		// POST to /api/v1/pods: the object names its namespace.
		return apierrors.NewMethodNotSupported(e.gvr.GroupResource(), "create")
	}
	if err := e.track(e.blank, obj, shown, "", managerOf(options.FieldManager, r.UserAgent())); err != nil {
		return err
	}
	created, err := e.objects.Create(r.Context(), obj, c.info.Namespace, Write{Strategy: e.view.Strategy, Options: options, DryRun: dry})
	if err != nil {
		return err
	}
	return e.writeObject(w, r, c, http.StatusCreated, created)
}

// joinTrace lets the object carry the trace of a request that has one.
func joinTrace(meta *metav1.ObjectMeta, r *http.Request) {
	parent := r.Header.Get("Traceparent")
	if parent == "" || meta.Annotations[journey.Annotation] != "" {
		return
	}
	if _, ok := journey.Parse(parent); ok {
		metav1.SetMetaDataAnnotation(meta, journey.Annotation, parent)
	}
}

// review serves POST of kinds that are answered and not stored.
func (e *endpoint) review(w http.ResponseWriter, r *http.Request, c *call) error {
	if _, ok := negotiate(r.Header.Get("Accept"), offers{}); !ok {
		return notAcceptable() // there is no table of an answer
	}
	options := &metav1.CreateOptions{}
	if err := decodeOptions(r.URL.Query(), options); err != nil {
		return err
	}
	obj, _, err := e.decode(w, r, options.FieldValidation)
	if err != nil {
		return err
	}
	if err := e.objects.place(metaOf(obj), c.info.Namespace); err != nil {
		return err
	}
	if errs := e.objects.Resource.Strategy.Validate(r.Context(), obj); len(errs) > 0 {
		return apierrors.NewInvalid(e.gvk.GroupKind(), "", errs)
	}
	answer, err := e.objects.Resource.Create(r.Context(), obj)
	if err != nil {
		return err
	}
	if _, ok := answer.(*metav1.Status); !ok {
		answer.GetObjectKind().SetGroupVersionKind(e.gvk)
	}
	e.server.codecs.WriteObject(w, r, http.StatusCreated, answer)
	return nil
}

// update serves PUT of one object or its status.
func (e *endpoint) update(w http.ResponseWriter, r *http.Request, c *call, s registry.Strategy) error {
	options := &metav1.UpdateOptions{}
	if err := decodeOptions(r.URL.Query(), options); err != nil {
		return err
	}
	dry := len(options.DryRun) > 0
	wanted, shown, err := e.decode(w, r, options.FieldValidation)
	if err != nil {
		return err
	}
	meta := metaOf(wanted)
	switch {
	case meta.Name == "":
		meta.Name = c.info.Name
	case meta.Name != c.info.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", meta.Name, c.info.Name))
	}
	if err := e.objects.place(meta, c.info.Namespace); err != nil {
		return err
	}
	manager := managerOf(options.FieldManager, r.UserAgent())
	change := func(current runtime.Object) (runtime.Object, error) {
		out := wanted.DeepCopyObject()
		if uid := metaOf(out).UID; uid != "" && metaOf(current).UID != "" && uid != metaOf(current).UID {
			return nil, apierrors.NewConflict(e.gvr.GroupResource(), meta.Name,
				fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, metaOf(current).UID))
		}
		return out, e.track(current, out, shown, c.info.Subresource, manager)
	}
	obj, created, err := e.objects.Update(r.Context(), c.info.Namespace, c.info.Name, change, Write{
		Strategy: s, Subresource: c.info.Subresource, Options: options, DryRun: dry, CreateIfAbsent: c.info.Subresource == "",
	})
	if err != nil {
		return e.staleError(err)
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return e.writeObject(w, r, c, code, obj)
}

// staleError names the resource in a conflict as the client named it.
func (e *endpoint) staleError(err error) error {
	var s *apierrors.StatusError
	if errors.As(err, &s) && s.ErrStatus.Reason == metav1.StatusReasonConflict && s.ErrStatus.Details != nil {
		s.ErrStatus.Details.Kind = e.gvr.Resource
	}
	return err
}

// scale serves GET, PUT and PATCH of the replica count.
func (e *endpoint) scale(w http.ResponseWriter, r *http.Request, c *call) error {
	view := e.view.Scale
	switch c.info.Verb {
	case "get":
		obj, err := e.objects.Get(r.Context(), c.info.Namespace, c.info.Name)
		if err != nil {
			return err
		}
		return e.writeScale(w, r, obj, http.StatusOK)
	case "update":
		options := &metav1.UpdateOptions{}
		if err := decodeOptions(r.URL.Query(), options); err != nil {
			return err
		}
		wanted, err := e.decodeScale(w, r, options.FieldValidation)
		if err != nil {
			return err
		}
		return e.updateScale(w, r, c, options, options.DryRun, func(current runtime.Object) (runtime.Object, error) {
			out := current.DeepCopyObject()
			if wanted.ResourceVersion != "" {
				metaOf(out).ResourceVersion = wanted.ResourceVersion
			} else {
				metaOf(out).ResourceVersion = ""
			}
			if err := view.Set(out, wanted.Spec.Replicas); err != nil {
				return nil, err
			}
			return out, e.track(current, out, nil, "scale", managerOf(options.FieldManager, r.UserAgent()))
		})
	case "patch":
		options := &metav1.PatchOptions{}
		if err := decodeOptions(r.URL.Query(), options); err != nil {
			return err
		}
		p, err := e.readPatch(w, r, c.info.Subresource, options)
		if err != nil {
			return err
		}
		return e.updateScale(w, r, c, options, options.DryRun, func(current runtime.Object) (runtime.Object, error) {
			before, err := view.Get(current)
			if err != nil {
				return nil, err
			}
			after, err := p.apply(before, scaleKind)
			if err != nil {
				return nil, err
			}
			out := current.DeepCopyObject()
			metaOf(out).ResourceVersion = metaOf(after).ResourceVersion
			if err := setScale(view, out, after); err != nil {
				return nil, err
			}
			return out, e.track(current, out, nil, "scale", managerOf(options.FieldManager, r.UserAgent()))
		})
	}
	return apierrors.NewMethodNotSupported(e.gvr.GroupResource(), c.info.Verb)
}

func (e *endpoint) updateScale(w http.ResponseWriter, r *http.Request, c *call, options runtime.Object, dryRuns []string, change Change) error {
	dry := len(dryRuns) > 0
	obj, _, err := e.objects.Update(r.Context(), c.info.Namespace, c.info.Name, change, Write{
		Strategy: e.view.Strategy, Subresource: "scale", Options: options, DryRun: dry,
	})
	if err != nil {
		return err
	}
	return e.writeScale(w, r, obj, http.StatusOK)
}

func (e *endpoint) writeScale(w http.ResponseWriter, r *http.Request, obj *cacher.Object, code int) error {
	current, err := e.objects.hub(obj.Obj)
	if err != nil {
		return err
	}
	s, err := e.view.Scale.Get(current)
	if err != nil {
		return err
	}
	s.GetObjectKind().SetGroupVersionKind(scaleKind)
	e.server.codecs.WriteObject(w, r, code, s)
	return nil
}
