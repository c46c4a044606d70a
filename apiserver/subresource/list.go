package subresource

import (
	"crypto/tls"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/journey"
)

// Config is what the subresources need.
type Config struct {
	Server *rest.Server
	Tokens *serviceaccount.Tokens
	Authz  authz.Mode
	// KubeletTLS authenticates the API server to kubelets and verifies them.
	KubeletTLS *tls.Config
	Journey    journey.Recorder
	// MaxTokenLifetime bounds service account tokens; 0 for no bound.
	MaxTokenLifetime time.Duration
}

// An Entry is one subresource of one resource.
type Entry struct {
	Parent schema.GroupResource
	Name   string
	Sub    rest.Subresource
}

// List returns all subresources.
func List(c Config) []Entry {
	pods := schema.GroupResource{Resource: "pods"}
	nodes := schema.GroupResource{Resource: "nodes"}
	services := schema.GroupResource{Resource: "services"}
	k := newKubelets(c)
	connect := []string{"create", "get"}
	proxyVerbs := []string{"create", "delete", "get", "patch", "update"}
	podKind := func(kind string) schema.GroupVersionKind { return corev1.SchemeGroupVersion.WithKind(kind) }
	return []Entry{
		{pods, "binding", entry{[]string{"create"}, podKind("Binding"), binding{c}.serve}},
		{pods, "eviction", entry{[]string{"create"}, policyv1.SchemeGroupVersion.WithKind("Eviction"), eviction{c}.serve}},
		{pods, "log", entry{[]string{"get"}, podKind("Pod"), k.log}},
		{pods, "exec", entry{connect, podKind("PodExecOptions"), k.exec}},
		{pods, "attach", entry{connect, podKind("PodAttachOptions"), k.attach}},
		{pods, "portforward", entry{connect, podKind("PodPortForwardOptions"), k.portForward}},
		{pods, "proxy", entry{proxyVerbs, podKind("PodProxyOptions"), k.podProxy}},
		{nodes, "proxy", entry{proxyVerbs, podKind("NodeProxyOptions"), k.nodeProxy}},
		{services, "proxy", entry{proxyVerbs, podKind("ServiceProxyOptions"), k.serviceProxy}},
		{schema.GroupResource{Resource: "serviceaccounts"}, "token", entry{[]string{"create"}, authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), token{c}.serve}},
	}
}

// entry makes a rest.Subresource of a function.
type entry struct {
	verbs []string
	kind  schema.GroupVersionKind
	serve func(w http.ResponseWriter, r *http.Request, info *request.Info, parent *rest.Objects) error
}

var _ rest.Subresource = entry{}

func (e entry) Verbs() []string               { return e.verbs }
func (e entry) Kind() schema.GroupVersionKind { return e.kind }
func (e entry) Serve(w http.ResponseWriter, r *http.Request, info *request.Info, parent *rest.Objects) error {
	return e.serve(w, r, info, parent)
}

// success is the Status that subresources answer with when they have no object.
func success() *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess, Code: http.StatusCreated}
}
