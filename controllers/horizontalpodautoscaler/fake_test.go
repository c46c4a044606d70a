package horizontalpodautoscaler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/periplus/periplus/controllers"
)

// A server has one scalable object and metrics of its pods, and counts requests.
type server struct {
	settings controllers.Autoscaling // none: the defaults

	mu        sync.Mutex // guards the rest
	path      string     // of the object: "/apis/apps/v1/namespaces/default/deployments/web"
	replicas  int32
	selector  string
	version   int
	conflicts int              // writes that are refused
	use       map[string]int64 // thousandths of a processor, by pod; nil: no metrics API
	window    time.Duration
	custom    map[string]string // by path: values; nil: no custom metrics API
	external  map[string]string // the same
	asked     map[string]int    // requests by method and path
}

func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *server) now() int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replicas
}

func (s *server) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[request]
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.Method+" "+r.URL.Path]++
	answer := func(v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	refuse := func(code int, reason metav1.StatusReason, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: text,
		})
	}
	values := func(list map[string]string, item string) {
		text, ok := list[r.URL.RequestURI()]
		if !ok {
			refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the metric for "+r.URL.RequestURI())
			return
		}
		items := []json.RawMessage{}
		for pair := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(pair, "=")
			items = append(items, json.RawMessage(fmt.Sprintf(item, name, time.Now().UTC().Format(time.RFC3339), value)))
		}
		answer(map[string]any{"kind": "List", "apiVersion": "v1", "items": items})
	}
	switch path := r.URL.Path; {
	case path == s.path+"/scale" && r.Method == http.MethodGet:
		answer(s.scale())
	case path == s.path+"/scale":
		var scale autoscalingv1.Scale
		if err := json.NewDecoder(r.Body).Decode(&scale); err != nil {
			refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		if s.conflicts > 0 || scale.ResourceVersion != strconv.Itoa(s.version) {
			s.conflicts--
			s.version++
			refuse(http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
			return
		}
		s.replicas = scale.Spec.Replicas
		s.version++
		answer(s.scale())
	case path == "/api":
		answer(metav1.APIVersions{Versions: []string{"v1"}})
	case path == "/apis":
		groups := &metav1.APIGroupList{}
		for _, gv := range []string{"apps/v1", "ships.example.com/v2", "custom.metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta2"} {
			group, version, _ := strings.Cut(gv, "/")
			if strings.HasPrefix(group, "custom.") && s.custom == nil {
				continue
			}
			v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
		answer(groups)
	case path == "/apis/apps/v1":
		answer(resources("apps/v1", "deployments", "Deployment"))
	case path == "/apis/ships.example.com/v2":
		answer(resources("ships.example.com/v2", "fleets", "Fleet"))
	case path == "/api/v1":
		answer(resources("v1", "services", "Service"))
	case path == "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods" && s.use != nil && r.URL.Query().Get("labelSelector") == s.selector:
		answer(s.podMetrics())
	case strings.HasPrefix(path, "/apis/custom.metrics.k8s.io/v1beta2/"):
		values(s.custom, `{"describedObject":{"kind":"Pod","name":%q},"timestamp":%q,"value":%q}`)
	case strings.HasPrefix(path, "/apis/external.metrics.k8s.io/v1beta1/"):
		values(s.external, `{"metricName":%q,"timestamp":%q,"value":%q}`)
	default:
		refuse(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
	}
}

func resources(gv, plural, kind string) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: gv, APIResources: []metav1.APIResource{
		{Name: plural + "/scale", Kind: "Scale", Namespaced: true}, {Name: plural, Kind: kind, Namespaced: true},
	}}
}

func (s *server) scale() *autoscalingv1.Scale {
	name := s.path[strings.LastIndex(s.path, "/")+1:]
	return &autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{Kind: "Scale", APIVersion: "autoscaling/v1"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", ResourceVersion: strconv.Itoa(s.version)},
		Spec:       autoscalingv1.ScaleSpec{Replicas: s.replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: s.replicas, Selector: s.selector},
	}
}

func (s *server) podMetrics() *metricsv1beta1.PodMetricsList {
	list := &metricsv1beta1.PodMetricsList{}
	for name, use := range s.use {
		list.Items = append(list.Items, metricsv1beta1.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Timestamp:  metav1.Now(), Window: metav1.Duration{Duration: s.window},
			Containers: []metricsv1beta1.ContainerMetrics{
				{Name: "app", Usage: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(use-1, resource.DecimalSI), "memory": resource.MustParse("10Mi")}},
				{Name: "log", Usage: corev1.ResourceList{"cpu": resource.MustParse("1m"), "memory": resource.MustParse("2Mi")}},
			},
		})
	}
	return list
}

func identity(ctx context.Context) context.Context { return ctx }
