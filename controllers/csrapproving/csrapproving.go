package csrapproving

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/controllers"
)

const (
	nodePrefix = "system:node:"
	nodesGroup = "system:nodes"
)

var everything = labels.Everything()

type csr = certificatesv1.CertificateSigningRequest

// Controller declares the approver. Its keys are requests.
func Controller() controllers.Controller {
	requests := certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")
	return controllers.Controller{
		Name:    "certificatesigningrequest-approving-controller",
		Reads:   []schema.GroupVersionResource{requests, corev1.SchemeGroupVersion.WithResource("nodes")},
		Writes:  []schema.GroupVersionResource{requests, authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews")},
		Workers: 1,
		New:     build,
	}
}

type reconciler struct {
	*controllers.Setup
	requests certificateslisters.CertificateSigningRequestLister
	nodes    corelisters.NodeLister
}

func build(s *controllers.Setup) (controllers.Reconciler, error) {
	certificates, nodes := s.Informers.Certificates().V1().CertificateSigningRequests(), s.Informers.Core().V1().Nodes()
	r := &reconciler{Setup: s, requests: certificates.Lister(), nodes: nodes.Lister()}
	s.Watch(certificates.Informer(), controllers.On(func(_, now *csr) {
		if now != nil && !decided(now) {
			s.Queue.Add(controllers.Key{Name: now.Name})
		}
	}))
	// A serving certificate waits until its node has said where it is.
	s.Watch(nodes.Informer(), controllers.On(func(old, now *corev1.Node) {
		if now == nil || old != nil && slices.Equal(old.Status.Addresses, now.Status.Addresses) {
			return
		}
		list, err := r.requests.List(everything)
		if err != nil {
			return
		}
		for _, c := range list {
			if !decided(c) && c.Spec.Username == nodePrefix+now.Name {
				s.Queue.Add(controllers.Key{Name: c.Name})
			}
		}
	}))
	return r, nil
}

func decided(c *csr) bool {
	return len(c.Status.Certificate) > 0 || slices.ContainsFunc(c.Status.Conditions, func(x certificatesv1.CertificateSigningRequestCondition) bool {
		return x.Type == certificatesv1.CertificateApproved || x.Type == certificatesv1.CertificateDenied
	})
}

// Reconcile approves a request that is in order.
func (r *reconciler) Reconcile(ctx context.Context, key controllers.Key) (time.Duration, error) {
	c, err := r.requests.Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && decided(c) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	block, _ := pem.Decode(c.Spec.Request)
	if block == nil {
		return 0, nil
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return 0, nil //nolint:nilerr // a person may look at it
	}
	var message string
	switch c.Spec.SignerName {
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		message, err = r.client(ctx, c, request)
	case certificatesv1.KubeletServingSignerName:
		if err := r.serving(c, request); err != nil {
			// It waits: for the node's object, or for a person.
			r.Log.Info("serving certificate not approved", base.KeyName, c.Name, base.KeyUser, c.Spec.Username, base.KeyError, err)
			return 0, nil
		}
		message = "Auto approving kubelet serving certificate for the node's own addresses."
	}
	if err != nil || message == "" {
		return 0, err
	}
	approved := c.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: message,
	})
	_, err = r.Client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, c.Name, approved, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return 0, err
}

// client says why a client certificate may be given, or "".
func (r *reconciler) client(ctx context.Context, c *csr, request *x509.CertificateRequest) (string, error) {
	if !isNode(request) || len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 ||
		!usages(c, certificatesv1.UsageClientAuth) {
		return "", nil
	}
	recognized := false
	for _, way := range []struct{ permission, message string }{
		{"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."},
		{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."},
	} {
		if way.permission == "selfnodeclient" && c.Spec.Username != request.Subject.CommonName {
			continue
		}
		recognized = true
		allowed, err := r.allowed(ctx, c, way.permission)
		if err != nil || allowed {
			return way.message, err
		}
	}
	if recognized {
		return "", fmt.Errorf("recognized csr %q as [selfnodeclient nodeclient] but subject access review was not approved", c.Name)
	}
	return "", nil
}

func (r *reconciler) allowed(ctx context.Context, c *csr, permission string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for k, v := range c.Spec.Extra {
		extra[k] = authorizationv1.ExtraValue(v)
	}
	answer, err := r.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: c.Spec.Username, UID: c.Spec.UID, Groups: c.Spec.Groups, Extra: extra,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: certificatesv1.GroupName, Version: "*", Resource: "certificatesigningrequests", Subresource: permission, Verb: "create",
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// serving returns why a serving certificate is not given: it is for a node
// that asks for itself, and names nothing but what its object names.
func (r *reconciler) serving(c *csr, request *x509.CertificateRequest) error {
	switch {
	case !isNode(request) || c.Spec.Username != request.Subject.CommonName:
		return errors.New("it is not a node's own")
	case !slices.Contains(c.Spec.Groups, nodesGroup):
		return errors.New("who asks is not a node")
	case !usages(c, certificatesv1.UsageServerAuth):
		return errors.New("its usages are not those of a kubelet's server")
	case len(request.EmailAddresses)+len(request.URIs) > 0:
		return errors.New("it names more than host names and addresses")
	case len(request.DNSNames)+len(request.IPAddresses) == 0:
		return errors.New("it names neither a host nor an address")
	}
	name := strings.TrimPrefix(request.Subject.CommonName, nodePrefix)
	node, err := r.nodes.Get(name)
	if err != nil {
		return fmt.Errorf("node %s is not registered yet", name)
	}
	own := map[string]bool{name: true}
	for _, a := range node.Status.Addresses {
		own[a.Address] = true
	}
	names := slices.Clone(request.DNSNames)
	for _, ip := range request.IPAddresses {
		names = append(names, ip.String())
	}
	others, err := r.nodes.List(everything)
	if err != nil {
		return err
	}
	for _, n := range names {
		if !own[n] {
			return fmt.Errorf("%s is not an address of node %s", n, name)
		}
		for _, o := range others {
			if o.Name != name && (o.Name == n || slices.ContainsFunc(o.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Address == n })) {
				return fmt.Errorf("%s is also an address of node %s", n, o.Name)
			}
		}
	}
	return nil
}

// isNode says whether the subject is that of a node.
func isNode(request *x509.CertificateRequest) bool {
	name, ok := strings.CutPrefix(request.Subject.CommonName, nodePrefix)
	return ok && name != "" && slices.Equal(request.Subject.Organization, []string{nodesGroup})
}

// usages says whether the request is for signing and for one purpose alone; RSA
// keys encipher besides.
func usages(c *csr, purpose certificatesv1.KeyUsage) bool {
	for _, u := range c.Spec.Usages {
		switch u {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, purpose:
		default:
			return false
		}
	}
	return slices.Contains(c.Spec.Usages, certificatesv1.UsageDigitalSignature) && slices.Contains(c.Spec.Usages, purpose)
}
