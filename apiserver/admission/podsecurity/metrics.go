package podsecurity

import (
	"sync"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
)

// recorder counts under upstream's names (pod_security_evaluations_total and others), of
// all servers in the process; it is made with the first thing to count.
var recorder = sync.OnceValue(func() *metrics.PrometheusRecorder {
	r := metrics.NewPrometheusRecorder(api.GetAPIVersion())
	r.MustRegister(legacyregistry.MustRegister)
	return r
})
