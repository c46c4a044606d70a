package lint

import "github.com/periplus/periplus/insight"

// A removal is a version of an API that is not served any more.
type removal struct{ apiVersion, kind, since, instead string }

// removals are upstream's, with the version in which they were removed.
var removals = []removal{
	{"extensions/v1beta1", "Deployment", "1.16", "apps/v1"},
	{"extensions/v1beta1", "DaemonSet", "1.16", "apps/v1"},
	{"extensions/v1beta1", "ReplicaSet", "1.16", "apps/v1"},
	{"extensions/v1beta1", "NetworkPolicy", "1.16", "networking.k8s.io/v1"},
	{"extensions/v1beta1", "PodSecurityPolicy", "1.16", "Pod Security Standards (labels of the namespace)"},
	{"apps/v1beta1", "", "1.16", "apps/v1"},
	{"apps/v1beta2", "", "1.16", "apps/v1"},
	{"extensions/v1beta1", "Ingress", "1.22", "networking.k8s.io/v1"},
	{"networking.k8s.io/v1beta1", "Ingress", "1.22", "networking.k8s.io/v1"},
	{"networking.k8s.io/v1beta1", "IngressClass", "1.22", "networking.k8s.io/v1"},
	{"admissionregistration.k8s.io/v1beta1", "ValidatingWebhookConfiguration", "1.22", "admissionregistration.k8s.io/v1"},
	{"admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", "1.22", "admissionregistration.k8s.io/v1"},
	{"apiextensions.k8s.io/v1beta1", "", "1.22", "apiextensions.k8s.io/v1"},
	{"apiregistration.k8s.io/v1beta1", "", "1.22", "apiregistration.k8s.io/v1"},
	{"certificates.k8s.io/v1beta1", "CertificateSigningRequest", "1.22", "certificates.k8s.io/v1"},
	{"coordination.k8s.io/v1beta1", "Lease", "1.22", "coordination.k8s.io/v1"},
	{"rbac.authorization.k8s.io/v1beta1", "", "1.22", "rbac.authorization.k8s.io/v1"},
	{"rbac.authorization.k8s.io/v1alpha1", "", "1.22", "rbac.authorization.k8s.io/v1"},
	{"scheduling.k8s.io/v1beta1", "", "1.22", "scheduling.k8s.io/v1"},
	{"storage.k8s.io/v1beta1", "StorageClass", "1.22", "storage.k8s.io/v1"},
	{"storage.k8s.io/v1beta1", "VolumeAttachment", "1.22", "storage.k8s.io/v1"},
	{"storage.k8s.io/v1beta1", "CSIDriver", "1.22", "storage.k8s.io/v1"},
	{"storage.k8s.io/v1beta1", "CSINode", "1.22", "storage.k8s.io/v1"},
	{"batch/v1beta1", "CronJob", "1.25", "batch/v1"},
	{"discovery.k8s.io/v1beta1", "EndpointSlice", "1.25", "discovery.k8s.io/v1"},
	{"events.k8s.io/v1beta1", "Event", "1.25", "events.k8s.io/v1"},
	{"autoscaling/v2beta1", "HorizontalPodAutoscaler", "1.25", "autoscaling/v2"},
	{"policy/v1beta1", "PodDisruptionBudget", "1.25", "policy/v1"},
	{"policy/v1beta1", "PodSecurityPolicy", "1.25", "Pod Security Standards (labels of the namespace)"},
	{"node.k8s.io/v1beta1", "RuntimeClass", "1.25", "node.k8s.io/v1"},
	{"autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.26", "autoscaling/v2"},
	{"flowcontrol.apiserver.k8s.io/v1beta1", "", "1.26", "flowcontrol.apiserver.k8s.io/v1"},
	{"storage.k8s.io/v1beta1", "CSIStorageCapacity", "1.27", "storage.k8s.io/v1"},
	{"flowcontrol.apiserver.k8s.io/v1beta2", "", "1.29", "flowcontrol.apiserver.k8s.io/v1"},
	{"flowcontrol.apiserver.k8s.io/v1beta3", "", "1.32", "flowcontrol.apiserver.k8s.io/v1"},
}

func removedIn(apiVersion, kind string) *removal {
	for i, r := range removals {
		if r.apiVersion == apiVersion && (r.kind == "" || r.kind == kind) {
			return &removals[i]
		}
	}
	return nil
}

// apiRules: is the version of the API still served?
func apiRules() []Rule {
	return []Rule{
		on("removed-api", Error, "The API server does not know this version any more: it cannot be applied.", func(_ *Set, o insight.Object) []Finding {
			version, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
			r := removedIn(version, kind)
			if r == nil {
				return nil
			}
			return []Finding{{What: version + " " + kind + " was removed in Kubernetes " + r.since + ": use " + r.instead, Fix: "apiVersion: " + r.instead + "\n"}}
		}),
	}
}
