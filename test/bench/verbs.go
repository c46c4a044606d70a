package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/periplus/periplus/test/bench/objects"
)

// nobody schedules the pods of benchmarks.
const nobody = "nobody"

// A subject is a kind of object that is written.
type subject struct {
	name, resource string
	make           func(name string) runtime.Object
	new            func() runtime.Object
	// change makes a further state of what the server answered.
	change func(obj runtime.Object)
	// strategic and applied are a patch and a configuration, with %s for the name.
	merge, strategic, applied string
}

var subjects = []subject{
	{
		name: "ConfigMap of 1 KB", resource: "configmaps", new: func() runtime.Object { return &corev1.ConfigMap{} },
		make: func(name string) runtime.Object {
			return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": strings.Repeat("x", 800)}}
		},
		change:    func(obj runtime.Object) { obj.(*corev1.ConfigMap).Data["k2"] = "updated" },
		merge:     `{"data":{"k3":"merged"}}`,
		strategic: `{"data":{"k4":"merged strategically"}}`,
		applied:   `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"k5":"applied"}}`,
	},
	{
		name: "Pod", resource: "pods", new: func() runtime.Object { return &corev1.Pod{} }, make: func(name string) runtime.Object { return objects.Pod(name, nobody) },
		change:    func(obj runtime.Object) { obj.(*corev1.Pod).Spec.Containers[0].Image = "example.com/app:2" },
		merge:     `{"metadata":{"labels":{"merged":"yes"}}}`,
		strategic: `{"spec":{"containers":[{"name":"app","image":"example.com/app:3"}]}}`,
		applied:   `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","labels":{"applied":"yes"}},"spec":{"containers":[{"name":"app","image":"example.com/app:3"}]}}`,
	},
}

// encode returns an object in a media type.
func encode(obj runtime.Object, media string) ([]byte, error) {
	if media == mediaProtobuf {
		return runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), obj)
	}
	return json.Marshal(obj)
}

// measureVerbs does each verb as fast as possible, in both media types.
func measureVerbs(ctx context.Context, b *bench) (err error) {
	own, err := b.etcdRates(ctx)
	if err != nil {
		return err
	}
	s, err := b.openServer(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	c, err := s.cluster()
	if err != nil {
		return err
	}
	if err := c.makeNamespace(ctx); err != nil {
		return err
	}
	for i := range subjects {
		for _, media := range []string{mediaProtobuf, mediaJSON} {
			if err := s.verbs(ctx, &subjects[i], media, own[b.clients]); err != nil {
				return fmt.Errorf("%s, %s: %w", subjects[i].name, media, err)
			}
		}
	}
	return nil
}

func (s *server) verbs(ctx context.Context, k *subject, media string, own float64) error {
	form := media[strings.LastIndexAny(media, "/.")+1:]
	path := "/api/v1/namespaces/" + namespace + "/" + k.resource
	name := func(i int) string { return fmt.Sprintf("%s-%06d", form[:1], i) }
	bodies := make([][]byte, s.ops)
	for i := range bodies {
		var err error
		if bodies[i], err = encode(k.make(name(i)), media); err != nil {
			return err
		}
	}
	phase := func(verb string, own float64, request func(i int) raw) error {
		what := fmt.Sprintf("%s %s, %s", verb, k.name, form)
		r, err := s.flood(ctx, what, s.ops, request)
		if err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
		s.rate(what, r, own)
		return nil
	}
	if err := phase("create", own, func(i int) raw {
		return raw{method: http.MethodPost, path: path, media: media, body: bodies[i]}
	}); err != nil {
		return err
	}
	if err := phase("get", 0, func(int) raw {
		return raw{method: http.MethodGet, path: path + "/" + name(rand.IntN(s.ops)), media: media} //nolint:gosec // not a secret
	}); err != nil {
		return err
	}
	for i := range bodies {
		obj := k.new()
		if err := s.ask(ctx, s.clients[0], raw{method: http.MethodGet, path: path + "/" + name(i), media: mediaProtobuf}, func(body io.Reader) error {
			text, err := io.ReadAll(body)
			if err == nil {
				_, _, err = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(text, nil, obj)
			}
			return err
		}); err != nil {
			return err
		}
		k.change(obj)
		var err error
		if bodies[i], err = encode(obj, media); err != nil {
			return err
		}
	}
	if err := phase("update", own, func(i int) raw {
		return raw{method: http.MethodPut, path: path + "/" + name(i), media: media, body: bodies[i]}
	}); err != nil {
		return err
	}
	for _, p := range []struct{ verb, media, query, body string }{
		{"merge patch", "application/merge-patch+json", "", k.merge},
		{"strategic patch", "application/strategic-merge-patch+json", "", k.strategic},
		{"apply", "application/apply-patch+yaml", "?fieldManager=bench&force=true", k.applied},
	} {
		if err := phase(p.verb, own, func(i int) raw {
			body := p.body
			if strings.Contains(body, "%s") {
				body = fmt.Sprintf(body, name(i))
			}
			return raw{method: http.MethodPatch, path: path + "/" + name(i) + p.query, media: p.media, accept: media, body: []byte(body)}
		}); err != nil {
			return err
		}
	}
	return phase("delete", own, func(i int) raw {
		return raw{method: http.MethodDelete, path: path + "/" + name(i) + "?gracePeriodSeconds=0", media: media}
	})
}
