package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/certificates/install"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/discovery/install"
	_ "k8s.io/kubernetes/pkg/apis/events/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"
	"k8s.io/kubernetes/pkg/registry/certificates/clustertrustbundle"
	"k8s.io/kubernetes/pkg/registry/certificates/podcertificaterequest"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/coordination/leasecandidate"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/endpoint"
	"k8s.io/kubernetes/pkg/registry/core/event"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/discovery/endpointslice"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/flowschema"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/prioritylevelconfiguration"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/ipaddress"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/networking/servicecidr"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/devicetaintrule"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattributesclass"
	"k8s.io/kubernetes/pkg/registry/storagemigration/storagemigration"
	"k8s.io/utils/clock"
)

// rules are those of a kind's main endpoint.
type rules interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

// A kind is the rules that upstream has for one.
type kind struct {
	gvr    schema.GroupVersionResource
	kind   string
	main   rules
	status rest.RESTUpdateStrategy
	views  map[string]rest.RESTUpdateStrategy
}

func gvr(g, v, r string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: g, Version: v, Resource: r}
}

// kinds are all that are compared.
func kinds() []kind {
	ns := namespaceClient()
	return []kind{
		{gvr("", "v1", "pods"), "Pod", pod.Strategy, pod.StatusStrategy, map[string]rest.RESTUpdateStrategy{"ephemeralcontainers": pod.EphemeralContainersStrategy, "resize": pod.ResizeStrategy}},
		{gvr("", "v1", "configmaps"), "ConfigMap", configmap.Strategy, nil, nil},
		{gvr("", "v1", "secrets"), "Secret", secret.Strategy, nil, nil},
		{gvr("", "v1", "endpoints"), "Endpoints", endpoint.Strategy, nil, nil},
		{gvr("", "v1", "events"), "Event", event.Strategy, nil, nil},
		{gvr("", "v1", "limitranges"), "LimitRange", limitrange.Strategy, nil, nil},
		{gvr("", "v1", "namespaces"), "Namespace", namespace.Strategy, namespace.StatusStrategy, map[string]rest.RESTUpdateStrategy{"finalize": namespace.FinalizeStrategy}},
		{gvr("", "v1", "nodes"), "Node", node.Strategy, node.StatusStrategy, nil},
		{gvr("", "v1", "persistentvolumes"), "PersistentVolume", persistentvolume.Strategy, persistentvolume.StatusStrategy, nil},
		{gvr("", "v1", "persistentvolumeclaims"), "PersistentVolumeClaim", persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy, nil},
		{gvr("", "v1", "podtemplates"), "PodTemplate", podtemplate.Strategy, nil, nil},
		{gvr("", "v1", "replicationcontrollers"), "ReplicationController", replicationcontroller.Strategy, replicationcontroller.StatusStrategy, nil},
		{gvr("", "v1", "resourcequotas"), "ResourceQuota", resourcequota.Strategy, resourcequota.StatusStrategy, nil},
		{gvr("", "v1", "serviceaccounts"), "ServiceAccount", serviceaccount.Strategy, nil, nil},
		{gvr("", "v1", "services"), "Service", service.Strategy, service.StatusStrategy, nil},
		{gvr("apps", "v1", "deployments"), "Deployment", deployment.Strategy, deployment.StatusStrategy, nil},
		{gvr("apps", "v1", "replicasets"), "ReplicaSet", replicaset.Strategy, replicaset.StatusStrategy, nil},
		{gvr("apps", "v1", "statefulsets"), "StatefulSet", statefulset.Strategy, statefulset.StatusStrategy, nil},
		{gvr("apps", "v1", "daemonsets"), "DaemonSet", daemonset.Strategy, daemonset.StatusStrategy, nil},
		{gvr("apps", "v1", "controllerrevisions"), "ControllerRevision", controllerrevision.Strategy, nil, nil},
		{gvr("batch", "v1", "jobs"), "Job", job.Strategy, job.StatusStrategy, nil},
		{gvr("batch", "v1", "cronjobs"), "CronJob", cronjob.Strategy, cronjob.StatusStrategy, nil},
		{gvr("autoscaling", "v2", "horizontalpodautoscalers"), "HorizontalPodAutoscaler", horizontalpodautoscaler.Strategy, horizontalpodautoscaler.StatusStrategy, nil},
		{gvr("networking.k8s.io", "v1", "ingresses"), "Ingress", ingress.Strategy, ingress.StatusStrategy, nil},
		{gvr("networking.k8s.io", "v1", "ingressclasses"), "IngressClass", ingressclass.Strategy, nil, nil},
		{gvr("networking.k8s.io", "v1", "networkpolicies"), "NetworkPolicy", networkpolicy.Strategy, nil, nil},
		{gvr("networking.k8s.io", "v1", "ipaddresses"), "IPAddress", ipaddress.Strategy, nil, nil},
		{gvr("networking.k8s.io", "v1", "servicecidrs"), "ServiceCIDR", servicecidr.Strategy, servicecidr.StatusStrategy, nil},
		{gvr("policy", "v1", "poddisruptionbudgets"), "PodDisruptionBudget", poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy, nil},
		{gvr("rbac.authorization.k8s.io", "v1", "roles"), "Role", role.Strategy, nil, nil},
		{gvr("rbac.authorization.k8s.io", "v1", "rolebindings"), "RoleBinding", rolebinding.Strategy, nil, nil},
		{gvr("rbac.authorization.k8s.io", "v1", "clusterroles"), "ClusterRole", clusterrole.Strategy, nil, nil},
		{gvr("rbac.authorization.k8s.io", "v1", "clusterrolebindings"), "ClusterRoleBinding", clusterrolebinding.Strategy, nil, nil},
		{gvr("storage.k8s.io", "v1", "storageclasses"), "StorageClass", storageclass.Strategy, nil, nil},
		{gvr("storage.k8s.io", "v1", "csidrivers"), "CSIDriver", csidriver.Strategy, nil, nil},
		{gvr("storage.k8s.io", "v1", "csinodes"), "CSINode", csinode.Strategy, csinode.StatusStrategy, nil},
		{gvr("storage.k8s.io", "v1", "csistoragecapacities"), "CSIStorageCapacity", csistoragecapacity.Strategy, nil, nil},
		{gvr("storage.k8s.io", "v1", "volumeattachments"), "VolumeAttachment", volumeattachment.Strategy, volumeattachment.StatusStrategy, nil},
		{gvr("storage.k8s.io", "v1", "volumeattributesclasses"), "VolumeAttributesClass", volumeattributesclass.Strategy, nil, nil},
		{gvr("scheduling.k8s.io", "v1", "priorityclasses"), "PriorityClass", priorityclass.Strategy, nil, nil},
		{gvr("scheduling.k8s.io", "v1beta1", "podgroups"), "PodGroup", podgroup.NewStrategy(), podgroup.NewStatusStrategy(podgroup.NewStrategy()), nil},
		{gvr("scheduling.k8s.io", "v1beta1", "workloads"), "Workload", workload.Strategy, nil, nil},
		{gvr("node.k8s.io", "v1", "runtimeclasses"), "RuntimeClass", runtimeclass.Strategy, nil, nil},
		{gvr("coordination.k8s.io", "v1", "leases"), "Lease", lease.Strategy, nil, nil},
		{gvr("coordination.k8s.io", "v1beta1", "leasecandidates"), "LeaseCandidate", leasecandidate.Strategy, nil, nil},
		{gvr("discovery.k8s.io", "v1", "endpointslices"), "EndpointSlice", endpointslice.Strategy, nil, nil},
		{gvr("certificates.k8s.io", "v1", "certificatesigningrequests"), "CertificateSigningRequest", certificates.Strategy, certificates.StatusStrategy, map[string]rest.RESTUpdateStrategy{"approval": certificates.ApprovalStrategy}},
		{gvr("certificates.k8s.io", "v1", "clustertrustbundles"), "ClusterTrustBundle", clustertrustbundle.Strategy, nil, nil},
		{gvr("certificates.k8s.io", "v1", "podcertificaterequests"), "PodCertificateRequest", podcertificaterequest.NewStrategy(), podcertificaterequest.NewStatusStrategy(podcertificaterequest.NewStrategy(), allowAll{}, clock.RealClock{}), nil},
		{gvr("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations"), "ValidatingWebhookConfiguration", validatingwebhookconfiguration.Strategy, nil, nil},
		{gvr("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"), "MutatingWebhookConfiguration", mutatingwebhookconfiguration.Strategy, nil, nil},
		{gvr("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"), "ValidatingAdmissionPolicy", validatingadmissionpolicy.NewStrategy(nil, nil), validatingadmissionpolicy.NewStatusStrategy(validatingadmissionpolicy.NewStrategy(nil, nil)), nil},
		{gvr("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings"), "ValidatingAdmissionPolicyBinding", validatingadmissionpolicybinding.NewStrategy(nil, nil, noResource{}), nil, nil},
		{gvr("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies"), "MutatingAdmissionPolicy", mutatingadmissionpolicy.NewStrategy(nil, nil), nil, nil},
		{gvr("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings"), "MutatingAdmissionPolicyBinding", mutatingadmissionpolicybinding.NewStrategy(nil, nil, noResource{}), nil, nil},
		{gvr("flowcontrol.apiserver.k8s.io", "v1", "flowschemas"), "FlowSchema", flowschema.Strategy, flowschema.StatusStrategy, nil},
		{gvr("flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations"), "PriorityLevelConfiguration", prioritylevelconfiguration.Strategy, prioritylevelconfiguration.StatusStrategy, nil},
		{gvr("resource.k8s.io", "v1", "deviceclasses"), "DeviceClass", deviceclass.Strategy, nil, nil},
		{gvr("resource.k8s.io", "v1", "resourceclaims"), "ResourceClaim", resourceclaim.NewStrategy(ns, allowAll{}), resourceclaim.NewStatusStrategy(resourceclaim.NewStrategy(ns, allowAll{})), nil},
		{gvr("resource.k8s.io", "v1", "resourceclaimtemplates"), "ResourceClaimTemplate", resourceclaimtemplate.NewStrategy(ns), nil, nil},
		{gvr("resource.k8s.io", "v1", "resourceslices"), "ResourceSlice", resourceslice.Strategy, nil, nil},
		{gvr("resource.k8s.io", "v1", "devicetaintrules"), "DeviceTaintRule", devicetaintrule.Strategy, devicetaintrule.StatusStrategy, nil},
		{gvr("storagemigration.k8s.io", "v1", "storageversionmigrations"), "StorageVersionMigration", storagemigration.Strategy, storagemigration.StatusStrategy, nil},
	}
}
