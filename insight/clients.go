package insight

import (
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	autoscalingclient "k8s.io/client-go/kubernetes/typed/autoscaling/v2"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	networkingclient "k8s.io/client-go/kubernetes/typed/networking/v1"
	nodeclient "k8s.io/client-go/kubernetes/typed/node/v1"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
	schedulingclient "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	storageclient "k8s.io/client-go/kubernetes/typed/storage/v1"
)

// Short names of client-go's interfaces, for the table of kinds.
type (
	podsOf           = coreclient.PodInterface
	servicesOf       = coreclient.ServiceInterface
	eventsOf         = coreclient.EventInterface
	configMapsOf     = coreclient.ConfigMapInterface
	secretsOf        = coreclient.SecretInterface
	accountsOf       = coreclient.ServiceAccountInterface
	claimsOf         = coreclient.PersistentVolumeClaimInterface
	quotasOf         = coreclient.ResourceQuotaInterface
	limitsOf         = coreclient.LimitRangeInterface
	volumesOf        = coreclient.PersistentVolumeInterface
	nodesOf          = coreclient.NodeInterface
	namespacesOf     = coreclient.NamespaceInterface
	deploymentsOf    = appsclient.DeploymentInterface
	replicaSetsOf    = appsclient.ReplicaSetInterface
	statefulSetsOf   = appsclient.StatefulSetInterface
	daemonSetsOf     = appsclient.DaemonSetInterface
	jobsOf           = batchclient.JobInterface
	cronJobsOf       = batchclient.CronJobInterface
	slicesOf         = discoveryclient.EndpointSliceInterface
	ingressesOf      = networkingclient.IngressInterface
	ingressClassesOf = networkingclient.IngressClassInterface
	policiesOf       = networkingclient.NetworkPolicyInterface
	budgetsOf        = policyclient.PodDisruptionBudgetInterface
	scalersOf        = autoscalingclient.HorizontalPodAutoscalerInterface
	classesOf        = storageclient.StorageClassInterface
	driversOf        = storageclient.CSIDriverInterface
	attachmentsOf    = storageclient.VolumeAttachmentInterface
	prioritiesOf     = schedulingclient.PriorityClassInterface
	runtimesOf       = nodeclient.RuntimeClassInterface
	validatingOf     = admissionclient.ValidatingWebhookConfigurationInterface
	mutatingOf       = admissionclient.MutatingWebhookConfigurationInterface
)
