package inject

import (
	"net"
	"strconv"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/mesh"
)

// ConfigurationName is that of the MutatingWebhookConfiguration.
const ConfigurationName = "periplus-sidecar-injector"

// Configuration tells API servers which pods to send here. Each asks the peri that
// it is a part of, over the loopback interface.
func Configuration(root []byte) *admissionregistrationv1.MutatingWebhookConfiguration {
	url := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(mesh.WebhookPort)) + Path
	webhook := func(name string, namespaces, objects []metav1.LabelSelectorRequirement) admissionregistrationv1.MutatingWebhook {
		return admissionregistrationv1.MutatingWebhook{
			Name:         name,
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: root},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{corev1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"pods"}, Scope: ptr(admissionregistrationv1.NamespacedScope)},
			}},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: namespaces}, ObjectSelector: &metav1.LabelSelector{MatchExpressions: objects},
			FailurePolicy: ptr(admissionregistrationv1.Fail), MatchPolicy: ptr(admissionregistrationv1.Equivalent),
			ReinvocationPolicy: ptr(admissionregistrationv1.NeverReinvocationPolicy),
			SideEffects:        ptr(admissionregistrationv1.SideEffectClassNoneOnDryRun), TimeoutSeconds: ptr(int32(10)),
			AdmissionReviewVersions: []string{"v1"},
		}
	}
	in := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpIn, Values: values}
	}
	notIn := func(key string, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values}
	}
	willing := []metav1.LabelSelectorRequirement{notIn(mesh.LabelInject, "false")}
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName, Labels: map[string]string{"app.kubernetes.io/managed-by": "periplus"}},
		Webhooks: []admissionregistrationv1.MutatingWebhook{
			webhook("namespace.sidecar-injector.istio.io", []metav1.LabelSelectorRequirement{in(mesh.LabelInjection, "enabled")}, willing),
			webhook("namespace.sidecar-injector.periplus.io", []metav1.LabelSelectorRequirement{in(mesh.LabelMesh, "enabled"), notIn(mesh.LabelInjection, "enabled", "disabled")}, willing),
			webhook("object.sidecar-injector.istio.io", []metav1.LabelSelectorRequirement{
				notIn(mesh.LabelInjection, "enabled", "disabled"), notIn(mesh.LabelMesh, "enabled"),
				notIn(corev1.LabelMetadataName, "kube-system", "kube-public", "kube-node-lease", mesh.RootNamespace),
			}, []metav1.LabelSelectorRequirement{in(mesh.LabelInject, "true")}),
		},
	}
}
