package rest

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/ownership"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

// apply serves PATCH with a configuration to be applied (server-side apply,
// KEP-555): an absent object is made.
func (e *endpoint) apply(w http.ResponseWriter, r *http.Request, c *call, s registry.Strategy, p *patch, options *metav1.PatchOptions) error {
	fields, err := e.fields(c.info.Subresource)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	force := options.Force != nil && *options.Force
	change := func(current runtime.Object) (runtime.Object, error) {
		live, err := e.versioned(current.DeepCopyObject())
		if err != nil {
			return nil, err
		}
		live.GetObjectKind().SetGroupVersionKind(e.gvk)
		wanted := &unstructured.Unstructured{Object: map[string]any{}}
		if err := decodeConfiguration(p.body, &wanted.Object); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		if err := e.checkDuplicates(r, p); err != nil {
			return nil, err
		}
		merged, err := fields.Apply(live, wanted, options.FieldManager, force)
		if err != nil {
			return nil, plain(err)
		}
		meta := metaOf(merged)
		ownership.Share(meta.ManagedFields)
		if uid := metaOf(current).UID; uid == "" && meta.UID != "" {
			return nil, apierrors.NewConflict(e.gvr.GroupResource(), c.info.Name,
				fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", meta.UID))
		}
		switch {
		case meta.Name == "":
			meta.Name = c.info.Name
		case meta.Name != c.info.Name:
			return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", meta.Name, c.info.Name))
		}
		if err := e.objects.place(meta, c.info.Namespace); err != nil {
			return nil, err
		}
		return e.stored(merged)
	}
	obj, created, err := e.objects.Update(r.Context(), c.info.Namespace, c.info.Name, change, Write{
		Strategy: s, Subresource: c.info.Subresource, Options: options, DryRun: len(options.DryRun) > 0, Apply: true, Upsert: c.info.Subresource == "",
	})
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return e.writeObject(w, r, c, code, obj)
}

// decodeConfiguration reads YAML (or JSON) with whole numbers as int64.
func decodeConfiguration(body []byte, into *map[string]any) error {
	data, err := yaml.YAMLToJSON(body)
	if err != nil {
		return err
	}
	return kjson.UnmarshalCaseSensitivePreserveInts(data, into)
}

// checkDuplicates treats keys that occur twice as the client wants it.
func (e *endpoint) checkDuplicates(r *http.Request, p *patch) error {
	if p.validation == metav1.FieldValidationIgnore {
		return nil
	}
	err := yaml.UnmarshalStrict(p.body, &map[string]any{})
	if err == nil {
		return nil
	}
	if p.validation == metav1.FieldValidationStrict {
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	}
	request.Warn(r.Context(), err.Error())
	return nil
}
