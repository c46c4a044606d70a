package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

// maxOperations bounds a JSON patch, as upstream.
const maxOperations = 10000

// A patch is the body of a PATCH request.
type patch struct {
	kind       types.PatchType
	body       []byte
	codecs     *Codecs
	validation string
	request    *http.Request
}

// readPatch reads a patch of one of the supported kinds.
func (e *endpoint) readPatch(w http.ResponseWriter, r *http.Request, sub string, options *metav1.PatchOptions) (*patch, error) {
	p := &patch{kind: types.PatchType(mediaOf(r)), codecs: e.server.codecs, request: r}
	accepted := []types.PatchType{types.JSONPatchType, types.MergePatchType}
	if !e.objects.Resource.JSONOnly {
		accepted = append(accepted, types.StrategicMergePatchType)
	}
	if sub != "scale" {
		accepted = append(accepted, types.ApplyYAMLPatchType, types.ApplyCBORPatchType)
	}
	if !slices.Contains(accepted, p.kind) {
		names := make([]string, len(accepted))
		for i, t := range accepted {
			names[i] = string(t)
		}
		return nil, unsupportedMediaType(names...)
	}
	if err := invalidOptions("PatchOptions", metav1validation.ValidatePatchOptions(options, p.kind)); err != nil {
		return nil, err
	}
	var err error
	p.validation = fieldValidation(options.FieldValidation)
	if p.body, err = readBody(w, r); err != nil {
		return nil, err
	}
	if p.kind == types.ApplyYAMLPatchType {
		if err := checkAliases(p.body); err != nil {
			return nil, err
		}
	}
	auditPatch(r, p)
	if p.kind == types.ApplyYAMLPatchType {
		return p, nil
	}
	if p.kind == types.ApplyCBORPatchType { // from here on the same as YAML
		if p.kind, p.body, err = asYAML(p.body); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// apply returns current with the patch applied; current is not modified.
func (p *patch) apply(current runtime.Object, gvk schema.GroupVersionKind) (runtime.Object, error) {
	before, err := p.codecs.EncodeJSON(current)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	after, err := p.applyJSON(before, current)
	if err != nil {
		return nil, err
	}
	obj, err := checkKind(gvk)(p.codecs.decodeStrict(after, gvk, newLike(current)))
	if err != nil && runtime.IsStrictDecodingError(err) && obj != nil {
		strict, _ := runtime.AsStrictDecodingError(err)
		switch p.validation {
		case metav1.FieldValidationStrict:
			return nil, apierrors.NewBadRequest(err.Error())
		case metav1.FieldValidationWarn:
			for _, e := range strict.Errors() {
				request.Warn(p.request.Context(), e.Error())
			}
		}
		err = nil
	}
	if err != nil {
		return nil, apierrors.NewInvalid(gvk.GroupKind(), metaOf(current).Name, field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(p.body), err.Error())})
	}
	return obj, nil
}

// newLike returns a new object of the same Go type.
func newLike(obj runtime.Object) runtime.Object {
	type unstructured interface{ NewEmptyInstance() runtime.Unstructured }
	if u, ok := obj.(unstructured); ok {
		return u.NewEmptyInstance()
	}
	return zeroOf(obj)
}

// zeroOf returns a new zero object of the same Go type.
func zeroOf(obj runtime.Object) runtime.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
}

func (p *patch) applyJSON(before []byte, like runtime.Object) ([]byte, error) {
	switch p.kind {
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(p.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if len(operations) > maxOperations {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(operations)))
		}
		after, err := operations.Apply(before)
		if err != nil {
			return nil, unprocessable(err)
		}
		return after, nil
	case types.MergePatchType:
		if !json.Valid(p.body) {
			return nil, apierrors.NewBadRequest("the body of the request is not valid JSON")
		}
		after, err := jsonpatch.MergePatch(before, p.body)
		if err != nil {
			return nil, unprocessable(err)
		}
		return after, nil
	default:
		after, err := strategicpatch.StrategicMergePatch(before, p.body, zeroOf(like))
		switch {
		case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
			errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
			errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
			return nil, apierrors.NewBadRequest(err.Error())
		case err != nil:
			return nil, unprocessable(err)
		}
		return after, nil
	}
}

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}

// withoutOwners returns a copy that shares everything but its managed fields.
func withoutOwners(obj runtime.Object) runtime.Object {
	out := reflect.New(reflect.TypeOf(obj).Elem())
	out.Elem().Set(reflect.ValueOf(obj).Elem())
	copied := out.Interface().(runtime.Object)
	metaOf(copied).ManagedFields = nil
	return copied
}

// patch serves PATCH of one object or its status.
func (e *endpoint) patch(w http.ResponseWriter, r *http.Request, c *call, s registry.Strategy) error {
	options := &metav1.PatchOptions{}
	if err := decodeOptions(r.URL.Query(), options); err != nil {
		return err
	}
	dry := len(options.DryRun) > 0
	p, err := e.readPatch(w, r, c.info.Subresource, options)
	if err != nil {
		return err
	}
	if p.kind == types.ApplyYAMLPatchType {
		return e.apply(w, r, c, s, p, options)
	}
	manager := managerOf(options.FieldManager, r.UserAgent())
	change := func(current runtime.Object) (runtime.Object, error) {
		before := current
		if e.also != nil {
			if before, err = e.also.From(current); err != nil {
				return nil, err
			}
		}
		owners := metaOf(before).ManagedFields
		ownerless := len(owners) > 0 && !bytes.Contains(p.body, []byte("managedFields"))
		if ownerless { // most of an object, of which the patch knows nothing
			before = withoutOwners(before)
		}
		shown, err := p.apply(before, e.gvk)
		if err != nil {
			return nil, err
		}
		if ownerless {
			metaOf(shown).ManagedFields = owners
		}
		after, err := e.stored(shown)
		if err != nil {
			return nil, err
		}
		return after, e.track(current, after, shown, c.info.Subresource, manager)
	}
	obj, _, err := e.objects.Update(r.Context(), c.info.Namespace, c.info.Name, change, Write{
		Strategy: s, Subresource: c.info.Subresource, Options: options, DryRun: dry,
	})
	if err != nil {
		return err
	}
	return e.writeObject(w, r, c, http.StatusOK, obj)
}
