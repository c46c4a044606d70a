package metrics

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/periplus/periplus/apiserver/registry"
)

// columns are metrics-server's.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: "Name of the resource"},
	{Name: string(corev1.ResourceCPU), Type: "string", Format: "quantity"},
	{Name: string(corev1.ResourceMemory), Type: "string", Format: "quantity"},
	{Name: "Window", Type: "string", Format: "duration"},
}

func row(name string, use corev1.ResourceList, window metav1.Duration) [][]any {
	return [][]any{{name, use.Cpu().String(), use.Memory().String(), window.Duration.String()}}
}

func nodeTable() *registry.Table {
	return &registry.Table{Columns: columns, Rows: func(obj runtime.Object) [][]any {
		m := obj.(*metricsv1beta1.NodeMetrics)
		return row(m.Name, m.Usage, m.Window)
	}}
}

func podTable() *registry.Table {
	return &registry.Table{Columns: columns, Rows: func(obj runtime.Object) [][]any {
		m := obj.(*metricsv1beta1.PodMetrics)
		sum := corev1.ResourceList{}
		for i := range m.Containers {
			for name, q := range m.Containers[i].Usage {
				total := sum[name]
				total.Add(q)
				sum[name] = total
			}
		}
		return row(m.Name, sum, m.Window)
	}}
}
