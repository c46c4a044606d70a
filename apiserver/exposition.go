package apiserver

import (
	"context"
	goruntime "runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"net/http"
	"strings"

	"github.com/periplus/periplus/apiserver/measure"
	"github.com/periplus/periplus/base/metric"
	"github.com/periplus/periplus/store"
)

// metricsHandler serves the metrics of this server, of the process's other components,
// of the libraries of Kubernetes and of etcd.
func (s *Server) metricsHandler() http.Handler {
	return measure.Handler(s.measure, s.config.Metrics, legacyregistry.DefaultGatherer, prometheus.DefaultGatherer)
}

// Metrics gathers what /metrics shows of this server itself.
func (s *Server) Metrics() *measure.Metrics { return s.measure }

// readings defines the metrics that are read off the server's state.
func (s *Server) readings(disk store.Store) {
	s.cacheReadings()
	s.processReadings()
	s.auditReadings()
	size := s.measure.Desc(metric.Stable, "gauge", "apiserver_storage_size_bytes", "Size of the storage database file physically allocated in bytes.", "storage_cluster_id")
	s.measure.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{size}, Read: func(out chan<- prometheus.Metric) {
		sizer, ok := disk.(store.Sizer)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if n, err := sizer.Size(ctx); err == nil {
			metric.Show(out, size, float64(n), "etcd-0")
		}
	}})
	down := s.measure.Desc(metric.Alpha, "gauge", "aggregator_unavailable_apiservice", "Gauge of APIServices which are marked as unavailable broken down by APIService name.", "name")
	s.measure.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{down}, Read: func(out chan<- prometheus.Metric) {
		list, err := s.rest.List(apiregistrationv1.SchemeGroupVersion.WithResource("apiservices"), "")
		if err != nil {
			return
		}
		for _, obj := range list {
			a := obj.(*apiregistrationv1.APIService)
			value := 1.0
			if helper.IsAPIServiceConditionTrue(a, apiregistrationv1.Available) {
				value = 0
			}
			metric.Show(out, down, value, a.Name)
		}
	}})
}

// cacheReadings are about the objects and the caches that hold them.
func (s *Server) cacheReadings() {
	of := []string{"group", "resource"}
	m := s.measure
	objects := m.Desc(metric.Stable, "gauge", "apiserver_storage_objects", "[DEPRECATED, consider using apiserver_resource_objects instead] Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", "resource")
	count := m.Desc(metric.Alpha, "gauge", "apiserver_resource_objects", "Number of stored objects at the time of last check split by kind. In case of a fetching error, the value will be -1.", of...)
	bytes := m.Desc(metric.Alpha, "gauge", "apiserver_resource_size_estimate_bytes", "Estimated size of stored objects in database. Estimate is based on sum of last observed sizes of serialized objects. In case of a fetching error, the value will be -1.", of...)
	events := m.Desc(metric.Beta, "counter", "apiserver_storage_events_received_total", "Number of etcd events received split by kind.", of...)
	garbled := m.Desc(metric.Alpha, "counter", "apiserver_storage_decode_errors_total", "Number of stored object decode errors split by object type", of...)
	received := m.Desc(metric.Alpha, "counter", "apiserver_watch_cache_events_received_total", "Counter of events received in watch cache broken by resource type.", of...)
	dispatched := m.Desc(metric.Alpha, "counter", "apiserver_watch_cache_events_dispatched_total", "Counter of events dispatched in watch cache broken by resource type.", of...)
	version := m.Desc(metric.Alpha, "gauge", "apiserver_watch_cache_resource_version", "Current resource version of watch cache broken by resource type. This is truncated to the 15 least significant digits.", of...)
	loads := m.Desc(metric.Alpha, "counter", "apiserver_watch_cache_initializations_total", "Counter of watch cache initializations broken by resource type.", of...)
	loaded := m.Desc(metric.Alpha, "counter", "apiserver_init_events_total", "Counter of init events processed in watch cache broken by resource type.", of...)
	capacity := m.Desc(metric.Alpha, "gauge", "watch_cache_capacity", "Total capacity of watch cache broken by resource type.", of...)
	grown := m.Desc(metric.Alpha, "counter", "watch_cache_capacity_increase_total", "Total number of watch cache capacity increase events broken by resource type.", of...)
	shrunk := m.Desc(metric.Alpha, "counter", "watch_cache_capacity_decrease_total", "Total number of watch cache capacity decrease events broken by resource type.", of...)
	m.MustRegister(&metric.Reading{
		Descs: []*prometheus.Desc{objects, count, bytes, events, garbled, received, dispatched, version, loads, loaded, capacity, grown, shrunk},
		Read: func(out chan<- prometheus.Metric) {
			kinds, _ := s.rest.Stored()
			for _, k := range kinds {
				gr, st := k.GVR.GroupResource(), k.Objects.Cache.Stats()
				metric.Show(out, objects, float64(st.Objects), gr.String())
				show := func(d *prometheus.Desc, v float64) { metric.Show(out, d, v, gr.Group, gr.Resource) }
				add := func(d *prometheus.Desc, v float64) { metric.Count(out, d, v, gr.Group, gr.Resource) }
				show(count, float64(st.Objects))
				show(bytes, float64(st.Bytes))
				show(version, float64(st.Rev%1_000_000_000_000_000))
				add(loads, float64(st.Loads))
				if st.Loaded > 0 {
					add(loaded, float64(st.Loaded))
				}
				if st.Events > 0 {
					add(events, float64(st.Events))
					add(received, float64(st.Events))
					add(dispatched, float64(st.Events))
				}
				if st.Undecodable > 0 {
					add(garbled, float64(st.Undecodable))
				}
				if st.Capacity > 0 {
					show(capacity, float64(st.Capacity))
					add(grown, float64(st.Grown))
					add(shrunk, float64(st.Shrunk))
				}
			}
		},
	})
}

// processReadings say which program this is.
func (s *Server) processReadings() {
	build := s.measure.Desc(metric.Beta, "gauge", "kubernetes_build_info", "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
		"major", "minor", "git_version", "git_commit", "git_tree_state", "build_date", "go_version", "compiler", "platform")
	features := s.measure.Desc(metric.Beta, "gauge", "kubernetes_feature_enabled", "This metric records the data about the stage and enablement of a k8s feature.", "name", "stage")
	s.measure.MustRegister(&metric.Reading{Descs: []*prometheus.Desc{build, features}, Read: func(out chan<- prometheus.Metric) {
		major, rest, _ := strings.Cut(strings.TrimPrefix(s.config.Version, "v"), ".")
		minor, _, _ := strings.Cut(rest, ".")
		metric.Show(out, build, 1, major, minor, s.config.Version, "", "clean", "", goruntime.Version(), goruntime.Compiler, goruntime.GOOS+"/"+goruntime.GOARCH)
		for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
			stage, value := string(spec.PreRelease), 0.0
			if spec.PreRelease == featuregate.GA {
				stage = ""
			}
			if utilfeature.DefaultFeatureGate.Enabled(name) {
				value = 1
			}
			metric.Show(out, features, value, string(name), stage)
		}
	}})
}
