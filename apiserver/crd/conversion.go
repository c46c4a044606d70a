package crd

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/periplus/periplus/apiserver/admission/webhook"
	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/apiserver/registry"
)

const (
	// conversionTimeout bounds one call of a conversion webhook.
	conversionTimeout = 30 * time.Second
	// convertedMost is how many converted objects are remembered of one version.
	convertedMost = 4096
)

// A translator asks a conversion webhook (strategy Webhook). What it has converted
// is remembered: stored objects are immutable and shared, so that a watch or the
// next list does not ask again. Objects lie in the store in whatever version was
// stored when they were last written, and are converted from that one.
type translator struct {
	stored, served *version
	connect        func() (*webhook.Connection, error)
	reviews        []string
	metrics        *measure.Metrics
	name           string // of the definition

	mu   sync.Mutex
	done map[*Object]*Object // served forms of stored objects
}

// newTranslator returns nil if versions are converted by rewriting apiVersion.
func newTranslator(crd *apiextensionsv1.CustomResourceDefinition, stored, served *version, services webhook.Services) *translator {
	c := crd.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return nil
	}
	in := c.Webhook.ClientConfig
	config := &admissionregistrationv1.WebhookClientConfig{URL: in.URL, CABundle: in.CABundle}
	if s := in.Service; s != nil {
		config.Service = &admissionregistrationv1.ServiceReference{Namespace: s.Namespace, Name: s.Name, Path: s.Path, Port: s.Port}
	}
	return &translator{
		stored: stored, served: served, reviews: c.Webhook.ConversionReviewVersions, metrics: services.Metrics, name: crd.Name, done: map[*Object]*Object{},
		connect: sync.OnceValues(func() (*webhook.Connection, error) { return webhook.Connect(config, services) }),
	}
}

func (t *translator) to(obj runtime.Object) (runtime.Object, error) {
	in := obj.(*Object)
	if in.GroupVersionKind() == t.stored.gvk {
		return in, nil
	}
	out, err := t.ask([]*Object{in}, t.stored)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

func (t *translator) from(obj runtime.Object) (runtime.Object, error) {
	stored := obj.(*Object)
	if stored.GroupVersionKind() == t.served.gvk {
		return stored.shallow(), nil
	}
	if err := t.prepare([]runtime.Object{stored}); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if out := t.done[stored]; out != nil {
		return out.shallow(), nil
	}
	return nil, fmt.Errorf("object %s/%s was not converted", stored.Namespace, stored.Name)
}

// prepare converts all of list that are of another version and not converted yet, in
// one call a version.
func (t *translator) prepare(list []runtime.Object) error {
	var order []schema.GroupVersionKind
	missing := map[schema.GroupVersionKind][]*Object{}
	t.mu.Lock()
	for _, obj := range list {
		o := obj.(*Object)
		gvk := o.GroupVersionKind()
		if gvk == t.served.gvk || t.done[o] != nil {
			continue
		}
		if missing[gvk] == nil {
			order = append(order, gvk)
		}
		missing[gvk] = append(missing[gvk], o)
	}
	t.mu.Unlock()
	for _, gvk := range order {
		if err := t.convert(missing[gvk]); err != nil {
			return err
		}
	}
	return nil
}

// convert asks for objects of one version and remembers them.
func (t *translator) convert(missing []*Object) error {
	out, err := t.ask(missing, t.served)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.done)+len(missing) > convertedMost {
		clear(t.done)
	}
	for i, o := range missing {
		t.done[o] = out[i]
	}
	return nil
}

// ask converts objects to a version, in the words of ConversionReview v1.
func (t *translator) ask(list []*Object, to *version) (converted []*Object, err error) {
	start, failure := time.Now(), "conversion_webhook_call_failure"
	defer func() {
		if err == nil {
			failure = ""
		}
		t.metrics.Converted(t.name, list[0].GroupVersionKind().Version, to.gvk.Version, failure, time.Since(start))
		if err != nil {
			err = fmt.Errorf("conversion webhook for %s failed: %w", list[0].GroupVersionKind(), err)
		}
	}()
	version := ""
	for _, v := range t.reviews {
		if v == "v1" || v == "v1beta1" {
			version = v
			break
		}
	}
	if version == "" {
		return nil, fmt.Errorf("webhook does not accept known ConversionReview versions (v1, v1beta1)")
	}
	asked := apiextensionsv1.ConversionReview{
		TypeMeta: metav1.TypeMeta{Kind: "ConversionReview", APIVersion: apiextensionsv1.GroupName + "/" + version},
		Request:  &apiextensionsv1.ConversionRequest{UID: uuid.NewUUID(), DesiredAPIVersion: to.gvk.GroupVersion().String()},
	}
	for _, o := range list {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		asked.Request.Objects = append(asked.Request.Objects, runtime.RawExtension{Raw: raw})
	}
	c, err := t.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), conversionTimeout)
	defer cancel()
	got := apiextensionsv1.ConversionReview{}
	if err := c.Post(ctx, asked, &got); err != nil {
		return nil, err
	}
	failure = "conversion_webhook_malformed_response_failure"
	switch r := got.Response; {
	case r == nil:
		return nil, fmt.Errorf("no response provided")
	case version == "v1" && r.UID != asked.Request.UID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", asked.Request.UID, r.UID)
	case r.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("%s", r.Result.Message)
	case len(r.ConvertedObjects) != len(list):
		failure = "conversion_webhook_partial_response_failure"
		return nil, fmt.Errorf("webhook returned %d objects, expected %d", len(r.ConvertedObjects), len(list))
	}
	failure = "conversion_webhook_invalid_converted_object_failure"
	converted = make([]*Object, len(list))
	for i, raw := range got.Response.ConvertedObjects {
		if converted[i], err = read(raw.Raw, list[i], to); err != nil {
			return nil, fmt.Errorf("converted object at index %d: %w", i, err)
		}
	}
	return converted, nil
}

// read decodes a converted object. Of its metadata only labels and annotations may differ.
func read(raw []byte, before *Object, to *version) (*Object, error) {
	out := to.new()
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, err
	}
	switch {
	case out.GroupVersionKind() != to.gvk:
		return nil, fmt.Errorf("expected %s, got %s", to.gvk, out.GroupVersionKind())
	case out.Name != before.Name || out.Namespace != before.Namespace || out.UID != before.UID:
		return nil, fmt.Errorf("name, namespace and uid must not change")
	}
	labels, annotations := out.Labels, out.Annotations
	before.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Labels, out.Annotations = labels, annotations
	return out, nil
}

// view is what a version shows whose objects a webhook converts: the rules are the
// stored version's, as they are applied to what is stored; columns and selectable
// fields are its own.
func (t *translator) view(crd *apiextensionsv1.CustomResourceDefinition) *registry.View {
	out, own := *t.stored.view(crd), t.served.view(crd)
	out.Deprecated = own.Deprecated
	out.Table = &registry.Table{Columns: own.Table.Columns, Rows: func(obj runtime.Object) [][]any {
		shown, err := t.from(obj)
		if err != nil {
			return nil
		}
		return own.Table.Rows(shown)
	}}
	out.SelectableFields, out.Fields = own.SelectableFields, nil
	if own.Fields != nil {
		out.Fields = func(obj runtime.Object) fields.Set {
			shown, err := t.from(obj)
			if err != nil {
				return nil
			}
			return own.Fields(shown)
		}
	}
	return &out
}
