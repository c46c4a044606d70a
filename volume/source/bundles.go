package source

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/periplus/periplus/volume"
)

// bundles are all ClusterTrustBundles.
type bundles struct {
	many
	order maphash.Seed
}

func (s *Source) watchBundles() *bundles {
	ctx, j := s.newSubject()
	b := &bundles{order: maphash.MakeSeed(), many: many{
		subject: j, notify: s.notify, refer: func(metav1.Object) volume.Ref { return volume.Ref{Kind: volume.KindTrustBundle} },
	}}
	all := s.config.Client.CertificatesV1().ClusterTrustBundles()
	s.follow(ctx, &b.many, "trust bundles", &certificatesv1.ClusterTrustBundle{}, cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return all.List(ctx, o) },
		WatchFuncWithContext: all.Watch,
	})
	return b
}

// TrustAnchors implements volume.Sources.
func (s *Source) TrustAnchors(p *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	s.mu.Lock()
	b := s.bundles
	s.mu.Unlock()
	if b == nil {
		return nil, errors.New("no pod on this node is known to refer to a ClusterTrustBundle")
	}
	if err := b.wait(s.ctx, "clustertrustbundle"); err != nil {
		return nil, err
	}
	optional := p.Optional != nil && *p.Optional
	switch {
	case p.Name != nil:
		bundle, ok := b.get("", *p.Name).(*certificatesv1.ClusterTrustBundle)
		switch {
		case ok:
			return b.anchors([]*certificatesv1.ClusterTrustBundle{bundle}), nil
		case optional:
			return []byte{}, nil
		}
		return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", apierrors.NewNotFound(certificatesv1.Resource("clustertrustbundle"), *p.Name))
	case p.SignerName != nil:
		selector, err := metav1.LabelSelectorAsSelector(p.LabelSelector) // nil selects nothing
		if err != nil {
			return nil, fmt.Errorf("while parsing label selector: %w", err)
		}
		found := b.of(*p.SignerName, selector)
		if len(found) == 0 && !optional {
			return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
		}
		return b.anchors(found), nil
	}
	return nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
}

func (b *bundles) of(signer string, selector labels.Selector) []*certificatesv1.ClusterTrustBundle {
	var found []*certificatesv1.ClusterTrustBundle
	for _, obj := range b.list() {
		if t, ok := obj.(*certificatesv1.ClusterTrustBundle); ok && t.Spec.SignerName == signer && selector.Matches(labels.Set(t.Labels)) {
			found = append(found, t)
		}
	}
	return found
}

// anchors joins the certificates of bundles. Nobody shall rely on their order, so it is
// another one in every life of the kubelet; within one the same certificates give the
// same bytes, so that files change only when their content does.
func (b *bundles) anchors(from []*certificatesv1.ClusterTrustBundle) []byte {
	rank := map[string]uint64{}
	for _, t := range from {
		for block, rest := pem.Decode([]byte(t.Spec.TrustBundle)); block != nil; block, rest = pem.Decode(rest) {
			der := string(block.Bytes)
			rank[der] = maphash.String(b.order, der)
		}
	}
	ders := make([]string, 0, len(rank))
	for der := range rank {
		ders = append(ders, der)
	}
	slices.SortFunc(ders, func(x, y string) int {
		if rank[x] < rank[y] {
			return -1
		}
		return 1
	})
	out := []byte{}
	for _, der := range ders {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(der)})...)
	}
	return out
}
