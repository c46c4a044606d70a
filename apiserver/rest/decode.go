package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/request"
)

// maxBody is the most bytes that a request may carry, as upstream.
const maxBody = 3 << 20

// readBody reads r's body, within the limit.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, apierrors.NewTimeoutError("the body of the request did not arrive in time: nothing was changed", 0)
	case err != nil:
		return nil, apierrors.NewBadRequest("the body of the request could not be read: " + err.Error())
	}
	measureBody(r.Context(), len(body))
	return body, nil
}

// mediaOf returns the body's media type, JSON by default.
func mediaOf(r *http.Request) string {
	t := r.Header.Get("Content-Type")
	if t == "" {
		return mediaJSON
	}
	media, _, err := mime.ParseMediaType(t)
	if err != nil {
		return t
	}
	return media
}

// decodeBody decodes the request's object into the kind that want names, a new
// one each time. Unknown and duplicate fields are treated as fieldValidation says.
func (c *Codecs) decodeBody(r *http.Request, body []byte, want schema.GroupVersionKind, into runtime.Object, validation string) (runtime.Object, error) {
	if len(body) == 0 {
		return nil, apierrors.NewBadRequest("the request has no body")
	}
	switch mediaOf(r) {
	case mediaProtobuf:
		if _, own := into.(registry.Decoder); own {
			return nil, unsupportedMediaType(mediaJSON, mediaYAML)
		}
		if err := checkProtobufDepth(body, into); err != nil {
			return nil, err
		}
		obj, err := checkKind(want)(c.proto.Decode(body, &want, into))
		return obj, badRequest(err, want)
	case mediaCBOR:
		obj, err := checkKind(want)(c.decodeCBOR(body, want, into))
		return obj, badRequest(lenient(r, err, validation), want)
	case mediaYAML:
		if err := checkAliases(body); err != nil {
			return nil, err
		}
		var err error
		toJSON := yaml.YAMLToJSON
		if validation == metav1.FieldValidationStrict {
			toJSON = yaml.YAMLToJSONStrict
		}
		if body, err = toJSON(body); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error converting YAML to JSON: %v", err))
		}
	case mediaJSON:
	default:
		return nil, unsupportedMediaType(mediaJSON, mediaYAML, mediaProtobuf, mediaCBOR)
	}
	if err := checkJSONDepth(body, into); err != nil {
		return nil, err
	}
	obj, err := checkKind(want)(c.decodeStrict(body, want, into))
	return obj, badRequest(lenient(r, err, validation), want)
}

// lenient makes warnings of what only strict clients want to be refused for.
func lenient(r *http.Request, err error, validation string) error {
	if err == nil || !runtime.IsStrictDecodingError(err) || validation == metav1.FieldValidationStrict {
		return err
	}
	if validation == metav1.FieldValidationWarn {
		strict, _ := runtime.AsStrictDecodingError(err)
		for _, e := range strict.Errors() {
			request.Warn(r.Context(), e.Error())
		}
	}
	return nil
}

func checkKind(want schema.GroupVersionKind) func(runtime.Object, *schema.GroupVersionKind, error) (runtime.Object, error) {
	return func(obj runtime.Object, got *schema.GroupVersionKind, err error) (runtime.Object, error) {
		if got != nil && *got != want && !got.Empty() {
			if got.GroupVersion() != want.GroupVersion() {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", got.GroupVersion(), want.GroupVersion()))
			}
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: the kind in the data (%s) does not match", got.Kind, got.Version, want.Kind, got.Kind))
		}
		return obj, err
	}
}

func badRequest(err error, want schema.GroupVersionKind) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	if runtime.IsStrictDecodingError(err) {
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", want.Kind, want.Version, want.Kind, err))
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", want.Kind, want.Version, want.Kind, err))
}

// decodeOptions fills options (CreateOptions, ListOptions …) from a query and
// validates those that are not validated with their body or selectors.
func decodeOptions(query url.Values, into runtime.Object) error {
	if len(query) == 0 {
		return nil
	}
	var err error
	var errs field.ErrorList
	kind := ""
	switch o := into.(type) {
	case *metav1.ListOptions:
		err = metav1.Convert_url_Values_To_v1_ListOptions(&query, o, nil)
	case *metav1.GetOptions:
		err = metav1.Convert_url_Values_To_v1_GetOptions(&query, o, nil)
	case *metav1.CreateOptions:
		err = metav1.Convert_url_Values_To_v1_CreateOptions(&query, o, nil)
		kind, errs = "CreateOptions", metav1validation.ValidateCreateOptions(o)
	case *metav1.UpdateOptions:
		err = metav1.Convert_url_Values_To_v1_UpdateOptions(&query, o, nil)
		kind, errs = "UpdateOptions", metav1validation.ValidateUpdateOptions(o)
	case *metav1.PatchOptions:
		err = metav1.Convert_url_Values_To_v1_PatchOptions(&query, o, nil)
		// What may go with which kind of patch comes later.
		kind, errs = "PatchOptions", metav1validation.ValidateUpdateOptions(&metav1.UpdateOptions{
			DryRun: o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation})
	case *metav1.DeleteOptions:
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(&query, o, nil)
	default:
		err = fmt.Errorf("options of type %T cannot be read from a query", into)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return invalidOptions(kind, errs)
}

func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// fieldValidation returns the wanted treatment of unknown fields; Warn by default.
func fieldValidation(v string) string {
	if v == "" {
		return metav1.FieldValidationWarn
	}
	return v
}

// decodeOptionsBody decodes options sent as a body. They are registered in
// every group version, so their type metadata is not looked at.
func (c *Codecs) decodeOptionsBody(r *http.Request, body []byte, options *metav1.DeleteOptions) error {
	switch media := mediaOf(r); media {
	case mediaProtobuf:
		raw, err := rawOf(body)
		if err == nil {
			err = options.Unmarshal(raw)
		}
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("DeleteOptions cannot be decoded: %v", err))
		}
	case mediaCBOR:
		text, err := cborToJSON(body)
		if err == nil {
			err = yaml.Unmarshal(text, options)
		}
		if err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("DeleteOptions cannot be decoded: %v", err))
		}
	case mediaJSON, mediaYAML:
		if err := checkAliases(body); err != nil {
			return err
		}
		if err := yaml.Unmarshal(body, options); err != nil {
			return apierrors.NewBadRequest(fmt.Sprintf("DeleteOptions cannot be decoded: %v", err))
		}
	default:
		return unsupportedMediaType(mediaJSON, mediaYAML, mediaProtobuf, mediaCBOR)
	}
	return nil
}
