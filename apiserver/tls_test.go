package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/base/pki"
)

// secure runs a server on a port of the loopback interface.
func secure(t *testing.T) (admin *restclient.Config, ca *pki.Authority) {
	t.Helper()
	ca, err := pki.OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	serving, err := pki.OpenLeaf(ca, t.TempDir()+"/serving", pki.Request{CommonName: "apiserver", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	startWith(t, func(c *apiserver.Config) { c.Certificate, c.ClientCAs = serving.Server, ca.Pool() }, listener)
	return as(t, ca, listener.Addr().String(), "root", "system:masters"), ca
}

// as returns the configuration of a client with a certificate; of an anonymous
// one for the name "".
func as(t *testing.T, ca *pki.Authority, address, name string, groups ...string) *restclient.Config {
	t.Helper()
	config := &restclient.Config{
		Host: "https://" + address, QPS: -1,
		ContentConfig:   restclient.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON},
		TLSClientConfig: restclient.TLSClientConfig{CAData: ca.PEM},
	}
	if name == "" {
		return config
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := ca.Issue(pki.Request{CommonName: name, Organizations: groups, Client: true}, &key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	if config.KeyData, err = pki.KeyPEM(key); err != nil {
		t.Fatal(err)
	}
	config.CertData = cert
	return config
}

// TestOverTLS: client-go with protobuf over HTTP/2, by certificate, by token and
// without either.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	admin, ca := secure(t)
	address := strings.TrimPrefix(admin.Host, "https://")
	root := clientOf(t, admin)
	maps := root.CoreV1().ConfigMaps("kube-public")
	made := put(t, maps, "a", nil)
	w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	relabel(t, maps, "a", `{"x":"y"}`)
	events(t, w, "MODIFIED a")

	plain, err := restclient.HTTPClientFor(admin)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, admin.Host+"/api/v1/namespaces/kube-public/configmaps/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", runtime.ContentTypeProtobuf)
	answer, err := plain.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.ProtoMajor != 2 || answer.Header.Get("Content-Type") != runtime.ContentTypeProtobuf || !strings.HasPrefix(string(body), "k8s\x00") {
		t.Errorf("%s, %s, body %.8q, %v; want protobuf over HTTP/2", answer.Proto, answer.Header.Get("Content-Type"), body, err)
	}

	bob := clientOf(t, as(t, ca, address, "bob"))
	_, err = bob.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{})
	if want := `secrets "s" is forbidden: User "bob" cannot get resource "secrets" in API group "" in the namespace "default"`; !apierrors.IsForbidden(err) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"a"}}}}
	if _, err := root.RbacV1().Roles("kube-public").Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "r"},
		Subjects: []rbacv1.Subject{{Kind: "User", APIGroup: "rbac.authorization.k8s.io", Name: "bob"}, {Kind: "ServiceAccount", Name: "robot", Namespace: "kube-public"}}}
	if _, err := root.RbacV1().RoleBindings("kube-public").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bob.CoreV1().ConfigMaps("kube-public").Get(ctx, "a", metav1.GetOptions{}); err != nil {
		t.Errorf("bob, once he may: %v", err)
	}

	nobody := clientOf(t, as(t, ca, address, ""))
	if _, err := nobody.CoreV1().ConfigMaps("kube-public").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "system:anonymous" cannot list`) {
		t.Errorf("anonymous: %v, want Forbidden", err)
	}
	if ok, err := nobody.RESTClient().Get().AbsPath("/healthz").DoRaw(ctx); err != nil || string(ok) != "ok" {
		t.Errorf("anonymous, /healthz: %q, %v", ok, err)
	}
	tokens(t, root, ca, address)

	stranger, err := pki.OpenAuthority(t.TempDir(), "ca")
	if err != nil {
		t.Fatal(err)
	}
	foreign := as(t, stranger, address, "root", "system:masters")
	foreign.CAData = admin.CAData
	_, err = clientOf(t, foreign).CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
	if err == nil {
		t.Error("a certificate of a stranger's authority was taken")
	}
}

// tokens asks for a service account's token and uses it until the account is gone.
func tokens(t *testing.T, root *kubernetes.Clientset, ca *pki.Authority, address string) {
	t.Helper()
	ctx := t.Context()
	accounts := root.CoreV1().ServiceAccounts("kube-public")
	if _, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	issued, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil || issued.Status.Token == "" {
		t.Fatalf("%+v, %v", issued, err)
	}
	config := as(t, ca, address, "")
	config.BearerToken = issued.Status.Token
	robot := clientOf(t, config)
	if _, err := robot.CoreV1().ConfigMaps("kube-public").Get(ctx, "a", metav1.GetOptions{}); err != nil {
		t.Errorf("the robot: %v", err)
	}
	me, err := robot.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || me.Status.UserInfo.Username != "system:serviceaccount:kube-public:robot" {
		t.Errorf("the robot is %+v, %v", me.Status.UserInfo, err)
	}
	review, err := root.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: issued.Status.Token}}, metav1.CreateOptions{})
	if err != nil || !review.Status.Authenticated {
		t.Errorf("review: %+v, %v", review.Status, err)
	}
	elsewhere, err := accounts.CreateToken(ctx, "robot", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.BearerToken = elsewhere.Status.Token
	if _, err := clientOf(t, config).CoreV1().ConfigMaps("kube-public").Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token for somebody else: %v, want Unauthorized", err)
	}
	if err := accounts.Delete(ctx, "robot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := robot.CoreV1().ConfigMaps("kube-public").Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("once the account is gone: %v, want Unauthorized", err)
	}
}
