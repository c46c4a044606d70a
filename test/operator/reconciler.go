package operator

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// Finalizer keeps a site until its farewell has been written.
const Finalizer = "example.com/site"

// A Reconciler makes sites what they are declared to be.
type Reconciler struct {
	client.Client
	Recorder events.EventRecorder
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.farewell(ctx, site)
	}
	if controllerutil.AddFinalizer(site, Finalizer) {
		if err := r.Update(ctx, site); err != nil {
			return ctrl.Result{}, err
		}
	}
	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, page, func() error {
		page.Data = map[string]string{"index.html": site.Spec.Title}
		return controllerutil.SetControllerReference(site, page, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	servers := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	change, err := controllerutil.CreateOrUpdate(ctx, r.Client, servers, func() error {
		labels := map[string]string{"site": site.Name}
		servers.Spec.Replicas, servers.Spec.Selector = site.Spec.Replicas, &metav1.LabelSelector{MatchLabels: labels}
		servers.Spec.Template.Labels = labels
		servers.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "nginx"}}
		return controllerutil.SetControllerReference(site, servers, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	if change == controllerutil.OperationResultCreated {
		r.Recorder.Eventf(site, servers, corev1.EventTypeNormal, "Created", "Create", "made deployment %s", servers.Name)
	}
	before := site.DeepCopyObject().(*Site)
	site.Status.ObservedGeneration, site.Status.Ready = site.Generation, servers.Status.ReadyReplicas
	condition := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Starting", ObservedGeneration: site.Generation}
	if servers.Status.ReadyReplicas == *site.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Served"
	}
	meta.SetStatusCondition(&site.Status.Conditions, condition)
	return ctrl.Result{}, r.Status().Patch(ctx, site, client.MergeFrom(before))
}

// farewell writes what is left of a site, and lets it go.
func (r *Reconciler) farewell(ctx context.Context, site *Site) error {
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Name + "-farewell", Namespace: site.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, note, func() error {
		note.Data = map[string]string{"title": site.Spec.Title}
		return nil
	}); err != nil {
		return err
	}
	if controllerutil.RemoveFinalizer(site, Finalizer) {
		return r.Update(ctx, site)
	}
	return nil
}

// SetupWithManager lets a manager run it.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).For(&Site{}).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).Complete(r)
}
