package apitest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/periplus/periplus/apitest"
)

// limit bounds what a test waits for, on however slow a machine.
const limit = time.Minute

// started is an environment that ends with the test.
func started(t testing.TB, e *apitest.Environment) *rest.Config {
	t.Helper()
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		if err := e.Stop(); err != nil {
			t.Errorf("stopped twice: %v", err)
		}
	})
	return config
}

func clientOf(t testing.TB, c *rest.Config) kubernetes.Interface {
	t.Helper()
	out, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVersionIsTheProducts(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "app", "config.go"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(source), fmt.Sprintf("const Version = %q", apitest.Version)) {
		t.Errorf("app/config.go has another version than %s", apitest.Version)
	}
}

// TestSideBySide: many environments in one process know nothing of each other.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			e := &apitest.Environment{Etcd: i == 0}
			config, err := e.Start()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() {
				if err := e.Stop(); err != nil {
					t.Error(err)
				}
			}()
			if _, err := e.Start(); !errors.Is(err, apitest.ErrStarted) {
				t.Errorf("started twice: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			c := clientOf(t, config)
			w, err := c.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			name := fmt.Sprintf("cm-%d", i)
			if _, err := c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			// The watch is left open: Stop ends it.
			if got := (<-w.ResultChan()).Object.(*corev1.ConfigMap).Name; got != name {
				t.Errorf("environment %d saw %s", i, got)
			}
			// Pods need no service account, as in envtest.
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
			if _, err := c.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestStopEndsClientsAndListener(t *testing.T) {
	t.Parallel()
	e := &apitest.Environment{}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	w, err := clientOf(t, config).CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() { // it ends
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := http.DefaultClient.Do(request); err == nil {
		answer.Body.Close()
		t.Error("somebody listens there still")
	}
	if _, err := e.Start(); err != nil {
		t.Errorf("started again: %v", err)
	}
	if err := e.Stop(); err != nil {
		t.Error(err)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	e := &apitest.Environment{}
	admin := clientOf(t, started(t, e))
	ctx := t.Context()
	user, err := e.AddUser(apitest.User{Name: "ann", Groups: []string{"viewers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ann := clientOf(t, user.Config())
	_, err = ann.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "ann" cannot list resource "pods"`) {
		t.Errorf("ann, before she may: %v", err)
	}
	binding := roleBinding("viewers", "view")
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The aggregated role's rules are a controller's to fill in: none runs here. So
	// the rules come with the role.
	if _, err := admin.RbacV1().ClusterRoles().Create(ctx, podReader("reader"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, roleBinding("readers", "reader"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("ann, once she may: %v", err)
	}
	// The kubeconfig of the administrator, and of the user, lead to the same server.
	file, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"admin": e.KubeConfig, "ann": file} {
		config, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clientOf(t, config).CoreV1().Pods("default").List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("%s, by kubeconfig: %v", name, err)
		}
	}
	if _, err := (&apitest.Environment{}).AddUser(apitest.User{}, nil); err == nil {
		t.Error("a user of nothing")
	}
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func TestCRDs(t *testing.T) {
	t.Parallel()
	e := &apitest.Environment{CRDDirectoryPaths: []string{filepath.Join("testdata", "crds")}, ErrorIfCRDPathMissing: true}
	config := started(t, e)
	if len(e.CRDs) != 1 || e.CRDs[0].UID == "" {
		t.Errorf("installed: %v", e.CRDs)
	}
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	widget := func(size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "w"}, "spec": map[string]any{"size": size},
		}}
	}
	if _, err := c.Resource(widgets).Namespace("default").Create(t.Context(), widget(10), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a widget that is too big: %v", err)
	}
	made, err := c.Resource(widgets).Namespace("default").Create(t.Context(), widget(3), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if color, _, _ := unstructured.NestedString(made.Object, "spec", "color"); color != "green" {
		t.Errorf("the default was not set: %v", made.Object)
	}
	// Once more: it is brought up to date.
	if _, err := apitest.InstallCRDs(config, apitest.CRDInstallOptions{Paths: []string{filepath.Join("testdata", "crds", "widgets.yaml")}}); err != nil {
		t.Error(err)
	}
	missing := &apitest.Environment{CRDDirectoryPaths: []string{"nowhere"}, ErrorIfCRDPathMissing: true}
	if _, err := missing.Start(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that does not exist: %v", err)
	}
	fine := &apitest.Environment{CRDDirectoryPaths: []string{"nowhere"}}
	if _, err := fine.Start(); err != nil {
		t.Error(err)
	}
	if err := fine.Stop(); err != nil {
		t.Error(err)
	}
}
