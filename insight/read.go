package insight

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

// atOnce bounds the requests in flight: enough to hide their latency, too few to
// burden a server.
const atOnce = 8

// A scope says of what namespaces the objects of a kind are read.
type scope int

const (
	local  scope = iota // the namespace that is asked about
	all                 // everywhere: others refer to it, or it has no namespace
	around              // everywhere if Everything is asked for, else local
)

// A kind is one that is read.
type kind struct {
	example Object
	scope   scope
	list    func(ctx context.Context, c kubernetes.Interface, namespace string) (runtime.Object, error)
}

// lister adapts the clients' List methods, which differ only in the list's type.
type lister[L runtime.Object] interface {
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
}

func of[L runtime.Object, I lister[L]](example Object, s scope, client func(c kubernetes.Interface, namespace string) I) kind {
	return kind{example, s, func(ctx context.Context, c kubernetes.Interface, namespace string) (runtime.Object, error) {
		return client(c, namespace).List(ctx, metav1.ListOptions{})
	}}
}

// kinds are all that is read. A new one is one entry.
func kinds() []kind {
	type cs = kubernetes.Interface
	return []kind{
		of(&corev1.Pod{}, around, func(c cs, ns string) podsOf { return c.CoreV1().Pods(ns) }),
		of(&corev1.Service{}, all, func(c cs, ns string) servicesOf { return c.CoreV1().Services(ns) }),
		of(&corev1.Event{}, local, func(c cs, ns string) eventsOf { return c.CoreV1().Events(ns) }),
		of(&corev1.ConfigMap{}, local, func(c cs, ns string) configMapsOf { return c.CoreV1().ConfigMaps(ns) }),
		of(&corev1.Secret{}, local, func(c cs, ns string) secretsOf { return c.CoreV1().Secrets(ns) }),
		of(&corev1.ServiceAccount{}, local, func(c cs, ns string) accountsOf { return c.CoreV1().ServiceAccounts(ns) }),
		of(&corev1.PersistentVolumeClaim{}, local, func(c cs, ns string) claimsOf { return c.CoreV1().PersistentVolumeClaims(ns) }),
		of(&corev1.ResourceQuota{}, local, func(c cs, ns string) quotasOf { return c.CoreV1().ResourceQuotas(ns) }),
		of(&corev1.LimitRange{}, local, func(c cs, ns string) limitsOf { return c.CoreV1().LimitRanges(ns) }),
		of(&corev1.PersistentVolume{}, all, func(c cs, _ string) volumesOf { return c.CoreV1().PersistentVolumes() }),
		of(&corev1.Node{}, all, func(c cs, _ string) nodesOf { return c.CoreV1().Nodes() }),
		of(&corev1.Namespace{}, all, func(c cs, _ string) namespacesOf { return c.CoreV1().Namespaces() }),
		of(&appsv1.Deployment{}, local, func(c cs, ns string) deploymentsOf { return c.AppsV1().Deployments(ns) }),
		of(&appsv1.ReplicaSet{}, local, func(c cs, ns string) replicaSetsOf { return c.AppsV1().ReplicaSets(ns) }),
		of(&appsv1.StatefulSet{}, local, func(c cs, ns string) statefulSetsOf { return c.AppsV1().StatefulSets(ns) }),
		of(&appsv1.DaemonSet{}, local, func(c cs, ns string) daemonSetsOf { return c.AppsV1().DaemonSets(ns) }),
		of(&batchv1.Job{}, local, func(c cs, ns string) jobsOf { return c.BatchV1().Jobs(ns) }),
		of(&batchv1.CronJob{}, local, func(c cs, ns string) cronJobsOf { return c.BatchV1().CronJobs(ns) }),
		of(&discoveryv1.EndpointSlice{}, local, func(c cs, ns string) slicesOf { return c.DiscoveryV1().EndpointSlices(ns) }),
		of(&networkingv1.Ingress{}, all, func(c cs, ns string) ingressesOf { return c.NetworkingV1().Ingresses(ns) }),
		of(&networkingv1.IngressClass{}, all, func(c cs, _ string) ingressClassesOf { return c.NetworkingV1().IngressClasses() }),
		of(&networkingv1.NetworkPolicy{}, local, func(c cs, ns string) policiesOf { return c.NetworkingV1().NetworkPolicies(ns) }),
		of(&policyv1.PodDisruptionBudget{}, local, func(c cs, ns string) budgetsOf { return c.PolicyV1().PodDisruptionBudgets(ns) }),
		of(&autoscalingv2.HorizontalPodAutoscaler{}, local, func(c cs, ns string) scalersOf { return c.AutoscalingV2().HorizontalPodAutoscalers(ns) }),
		of(&storagev1.StorageClass{}, all, func(c cs, _ string) classesOf { return c.StorageV1().StorageClasses() }),
		of(&storagev1.CSIDriver{}, all, func(c cs, _ string) driversOf { return c.StorageV1().CSIDrivers() }),
		of(&storagev1.VolumeAttachment{}, all, func(c cs, _ string) attachmentsOf { return c.StorageV1().VolumeAttachments() }),
		of(&schedulingv1.PriorityClass{}, all, func(c cs, _ string) prioritiesOf { return c.SchedulingV1().PriorityClasses() }),
		of(&nodev1.RuntimeClass{}, all, func(c cs, _ string) runtimesOf { return c.NodeV1().RuntimeClasses() }),
		of(&admissionv1.ValidatingWebhookConfiguration{}, all, func(c cs, _ string) validatingOf {
			return c.AdmissionregistrationV1().ValidatingWebhookConfigurations()
		}),
		of(&admissionv1.MutatingWebhookConfiguration{}, all, func(c cs, _ string) mutatingOf { return c.AdmissionregistrationV1().MutatingWebhookConfigurations() }),
	}
}

// Options say how much is read.
type Options struct {
	Namespace string
	// Everything reads the pods of all namespaces: who uses the nodes?
	Everything bool
	// Events limits the events to those about one object without a namespace.
	About *Ref
}

// FromCluster reads what may have to do with the objects of a namespace. Kinds
// that cannot be read are noted in the Snapshot; only a server that does not answer
// is an error.
func FromCluster(ctx context.Context, c kubernetes.Interface, o Options) (*Snapshot, error) {
	list := kinds()
	lists := make([][]Object, len(list))
	failed := make([]error, len(list))
	group, each := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, k := range list {
		group.Go(func() error {
			namespace := o.Namespace
			if k.scope == all || k.scope == around && o.Everything {
				namespace = ""
			}
			got, err := k.list(each, c, namespace)
			if apierrors.IsForbidden(err) && namespace == "" && o.Namespace != "" {
				got, err = k.list(each, c, o.Namespace)
			}
			switch {
			case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
				failed[i] = err
				return nil
			case err != nil:
				return err
			}
			items, err := meta.ExtractList(got)
			for _, item := range items {
				lists[i] = append(lists[i], item.(Object))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	s := NewSnapshot(time.Now(), o.Namespace, slices.Concat(lists...)...)
	for i, err := range failed {
		if err != nil {
			s.unread[reflect.TypeOf(list[i].example)] = err
		}
	}
	return s, s.readAbout(ctx, c, o)
}

// readAbout reads events of an object that has no namespace; they are in "default".
func (s *Snapshot) readAbout(ctx context.Context, c kubernetes.Interface, o Options) error {
	if o.About == nil || o.About.Namespace != "" || o.Namespace == metav1.NamespaceDefault {
		return nil
	}
	events, err := c.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + o.About.Name})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for i := range events.Items {
		if strings.EqualFold(events.Items[i].InvolvedObject.Kind, o.About.Kind) {
			s.add(&events.Items[i])
		}
	}
	return nil
}
