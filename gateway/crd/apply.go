package crd

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

//go:embed zz_generated.definitions.json.zst
var packed []byte

var resource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// names are those of the definitions, without the group.
var names = []string{"gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants"}

// A Definer makes definitions that are not there yet.
type Definer func(context.Context, []*apiextensionsv1.CustomResourceDefinition) error

// Apply makes the definitions that are missing. Those that somebody else has made, in
// whatever version, stay.
func Apply(ctx context.Context, m metadata.Interface, define Definer) error {
	missing := map[string]bool{}
	for _, n := range names {
		name := n + ".gateway.networking.k8s.io"
		_, err := m.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing[name] = true
		case err != nil:
			return fmt.Errorf("definition %s: %w", name, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	all, err := definitions()
	if err != nil {
		return err
	}
	return define(ctx, slices.DeleteFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool { return !missing[d.Name] }))
}

func definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer r.Close()
	text, err := r.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("definitions of the Gateway API: %w", err)
	}
	var list []*apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("definitions of the Gateway API: %w", err)
	}
	return list, nil
}
