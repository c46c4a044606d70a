package rest

import (
	"context"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/request"
)

// AdmitSubresource asks admission about a request to a subresource that has a kind
// of its own: a binding, an eviction, a request for a token, the options of a connection.
// Mutators may change obj; then, before validators see it, settle does what the server does.
func (o *Objects) AdmitSubresource(ctx context.Context, op admission.Operation, info *request.Info, kind schema.GroupVersionKind, obj, options runtime.Object, dryRun bool, settle ...func() error) error {
	obj.GetObjectKind().SetGroupVersionKind(kind)
	a := &admission.Attributes{
		Operation: op, Resource: o.Resource.GVR, Subresource: info.Subresource, Kind: kind, Namespace: info.Namespace, Name: info.Name,
		Object: obj, Options: options, DryRun: dryRun, Forms: ownForms{o, kind}, Authorizer: o.server.config.Authorizer,
	}
	if s := request.From(ctx); s != nil {
		a.User = s.User
	}
	if err := o.chain.Admit(ctx, a); err != nil {
		return forbidden(err, o.group(), info.Name)
	}
	for _, f := range settle {
		if err := f(); err != nil {
			return err
		}
	}
	if err := o.chain.Validate(ctx, a); err != nil {
		return forbidden(err, o.group(), info.Name)
	}
	return nil
}

// ownForms shows what is sent to a subresource: there is one version of it.
type ownForms struct {
	o    *Objects
	kind schema.GroupVersionKind
}

var _ admission.Forms = ownForms{}

func (f ownForms) Versions() []schema.GroupVersion {
	return []schema.GroupVersion{f.o.Resource.GVR.GroupVersion()}
}

func (f ownForms) Kind(schema.GroupVersion, string) schema.GroupVersionKind { return f.kind }

func (f ownForms) Encode(obj runtime.Object, _ schema.GroupVersion, _ string) ([]byte, error) {
	return f.o.server.codecs.EncodeJSON(obj)
}

func (f ownForms) Decode(data []byte, _ schema.GroupVersion, _ string, obj runtime.Object) error {
	_, _, err := f.o.server.codecs.json.Decode(data, &f.kind, obj)
	return err
}

// admitConnection asks admission about a stream or a proxied request, whose options are in its query.
func (s *Server) admitConnection(ctx context.Context, query url.Values, info *request.Info, o *Objects, sub Subresource) error {
	kind := sub.Kind()
	if !strings.HasSuffix(kind.Kind, "Options") {
		return nil
	}
	obj, err := s.config.Scheme.New(kind)
	if err != nil {
		return nil //nolint:nilerr // not a kind that admission can be shown
	}
	fill(reflect.ValueOf(obj).Elem(), query)
	if p := reflect.ValueOf(obj).Elem().FieldByName("Path"); p.IsValid() && info.Rest != "" {
		p.SetString(info.Rest)
	}
	return o.AdmitSubresource(ctx, admission.Connect, info, kind, obj, nil, false)
}

// fill sets the fields of an options kind from a query.
func fill(options reflect.Value, query url.Values) {
	for i := range options.NumField() {
		name, _, _ := strings.Cut(options.Type().Field(i).Tag.Get("json"), ",")
		values := query[name]
		if name == "" || len(values) == 0 {
			continue
		}
		switch f := options.Field(i); {
		case f.Kind() == reflect.String:
			f.SetString(values[0])
		case f.Kind() == reflect.Bool:
			on, err := strconv.ParseBool(values[0])
			f.SetBool(on || err != nil)
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.String:
			f.Set(reflect.ValueOf(values))
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Int32:
			for _, v := range values {
				if n, err := strconv.ParseInt(v, 10, 32); err == nil {
					f.Set(reflect.Append(f, reflect.ValueOf(int32(n))))
				}
			}
		}
	}
}
