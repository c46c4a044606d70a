package horizontalpodautoscaler

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	externalv1beta1 "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const customGroup = "custom.metrics.k8s.io"

// defaultWindow is that of custom metrics that do not say theirs.
const defaultWindow = time.Minute

// resource reads what pods, or their container of the given name, use of a resource.
func (a *api) resource(ctx context.Context, namespace string, name corev1.ResourceName, pods labels.Selector, container string) (figures, error) {
	list := metricsv1beta1.PodMetricsList{}
	path := groupPath(metricsv1beta1.SchemeGroupVersion) + "/namespaces/" + namespace + "/pods"
	if err := a.get(ctx, path, url.Values{"labelSelector": {pods.String()}}, &list); err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from resource metrics API")
	}
	out := make(figures, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		if value, ok := usageOf(m, name, container); ok {
			out[m.Name] = figure{m.Timestamp.Time, m.Window.Duration, value}
		}
	}
	return out, nil
}

// usageOf adds up a pod's containers. A pod of which one has no figure has none.
func usageOf(m *metricsv1beta1.PodMetrics, name corev1.ResourceName, container string) (sum int64, ok bool) {
	for i := range m.Containers {
		c := &m.Containers[i]
		if container != "" && c.Name != container {
			continue
		}
		q, found := c.Usage[name]
		if !found {
			return 0, false
		}
		sum, ok = sum+q.MilliValue(), true
	}
	return sum, ok
}

// customValues is MetricValueList of v1beta1 and v1beta2, as far as it is needed.
type customValues struct {
	Items []struct {
		DescribedObject corev1.ObjectReference `json:"describedObject"`
		Timestamp       metav1.Time            `json:"timestamp"`
		Window          *int64                 `json:"window"`        // v1beta1
		WindowSeconds   *int64                 `json:"windowSeconds"` // v1beta2
		Value           resource.Quantity      `json:"value"`
	} `json:"items"`
}

// custom reads a custom metric from the newest version that is served.
func (a *api) custom(ctx context.Context, path string, query url.Values) (*customValues, error) {
	versions, err := a.versions(customGroup)
	if err != nil {
		return nil, err
	}
	served := map[string]bool{}
	for _, gv := range versions {
		served[gv.Version] = true
	}
	for _, v := range []string{"v1beta2", "v1beta1"} {
		if served[v] {
			list := &customValues{}
			return list, a.get(ctx, groupPath(schema.GroupVersion{Group: customGroup, Version: v})+path, query, list)
		}
	}
	return nil, fmt.Errorf("no custom metrics API (%s) registered", customGroup)
}

func metricQuery(pods, of labels.Selector) url.Values {
	q := url.Values{}
	if text := pods.String(); text != "" {
		q.Set("labelSelector", text)
	}
	if text := of.String(); text != "" {
		q.Set("metricLabelSelector", text)
	}
	return q
}

// ofPods reads a metric that each pod has.
func (a *api) ofPods(ctx context.Context, namespace, metric string, pods, of labels.Selector) (figures, error) {
	list, err := a.custom(ctx, "/namespaces/"+namespace+"/pods/*/"+url.PathEscape(metric), metricQuery(pods, of))
	if err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from custom metrics API")
	}
	out := make(figures, len(list.Items))
	for i := range list.Items {
		m := &list.Items[i]
		window := defaultWindow
		for _, s := range []*int64{m.Window, m.WindowSeconds} {
			if s != nil {
				window = time.Duration(*s) * time.Second
			}
		}
		out[m.DescribedObject.Name] = figure{m.Timestamp.Time, window, m.Value.MilliValue()}
	}
	return out, nil
}

// ofObject reads a metric of one object, in thousandths.
func (a *api) ofObject(ctx context.Context, namespace string, ref *autoscalingv2.CrossVersionObjectReference, metric string, of labels.Selector) (int64, error) {
	value, err := a.objectValue(ctx, namespace, ref, metric, of)
	if err != nil {
		return 0, fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)
	}
	return value, nil
}

func (a *api) objectValue(ctx context.Context, namespace string, ref *autoscalingv2.CrossVersionObjectReference, metric string, of labels.Selector) (int64, error) {
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	path := "/namespaces/" + namespace
	if kind.Group == "" && kind.Kind == "Namespace" {
		path += "/metrics/" // its name is not looked at: references stay inside the namespace
	} else {
		gvr, err := a.resourceOf(kind)
		if err != nil {
			return 0, err
		}
		path += "/" + gvr.GroupResource().String() + "/" + url.PathEscape(ref.Name) + "/"
	}
	list, err := a.custom(ctx, path+url.PathEscape(metric), metricQuery(labels.Nothing(), of))
	if err != nil {
		return 0, err
	}
	if len(list.Items) != 1 {
		return 0, fmt.Errorf("the custom metrics API server returned %v results when we asked for exactly one", len(list.Items))
	}
	return list.Items[0].Value.MilliValue(), nil
}

// external reads the values of an external metric, in thousandths.
func (a *api) external(ctx context.Context, namespace, metric string, of labels.Selector) ([]int64, error) {
	list := externalv1beta1.ExternalMetricValueList{}
	query := url.Values{}
	if text := of.String(); text != "" {
		query.Set("labelSelector", text)
	}
	path := groupPath(externalv1beta1.SchemeGroupVersion) + "/namespaces/" + namespace + "/" + url.PathEscape(metric)
	if err := a.get(ctx, path, query, &list); err != nil {
		return nil, fmt.Errorf("unable to fetch metrics from external metrics API: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, errors.New("no metrics returned from external metrics API")
	}
	out := make([]int64, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, list.Items[i].Value.MilliValue())
	}
	return out, nil
}
