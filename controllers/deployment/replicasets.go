package deployment

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"

	"github.com/periplus/periplus/journey"
)

// hashLabel sets the pods of the versions apart.
const hashLabel = appsv1.DefaultDeploymentUniqueLabelKey

// TemplateHash returns the label value and name suffix for a version of the pod
// template, the same as upstream's: FNV-1a over the dumped template, then over the
// number of collisions that this Deployment has met.
func TemplateHash(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	fmt.Fprintf(h, "%v", dump.ForHash(*template))
	if collisions != nil {
		var b [8]byte
		binary.LittleEndian.PutUint32(b[:], uint32(*collisions))
		h.Write(b[:])
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// sameTemplate compares pod templates without the hash label.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := *a, *b
	x.Labels, y.Labels = withoutHash(a.Labels), withoutHash(b.Labels)
	return equality.Semantic.DeepEqual(&x, &y)
}

func withoutHash(m map[string]string) map[string]string {
	out := maps.Clone(m)
	delete(out, hashLabel)
	return out
}

// identify finds the ReplicaSet of the current template (the oldest, should there
// be several), creates it if asked to, and brings revisions up to date.
func (roll *rollout) identify(ctx context.Context, create bool) error {
	byAge(roll.sets)
	roll.newest, roll.old = nil, nil
	for _, rs := range roll.sets {
		if roll.newest == nil && sameTemplate(&rs.Spec.Template, &roll.d.Spec.Template) {
			roll.newest = rs
		} else {
			roll.old = append(roll.old, rs)
		}
	}
	revision := strconv.FormatInt(maxRevision(roll.old)+1, 10)
	switch {
	case roll.newest != nil:
		return roll.refresh(ctx, revision)
	case create:
		return roll.create(ctx, revision)
	}
	return nil
}

// refresh copies annotations, revision and minReadySeconds to the newest set.
func (roll *rollout) refresh(ctx context.Context, revision string) error {
	d := roll.d
	rs := roll.newest.DeepCopy()
	annotated := annotate(d, rs, revision, true)
	if annotated || rs.Spec.MinReadySeconds != d.Spec.MinReadySeconds {
		rs.Spec.MinReadySeconds = d.Spec.MinReadySeconds
		updated, err := roll.Client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, rs, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		roll.newest = updated
	}
	setRevision(d, roll.newest.Annotations[revisionAnnotation])
	if hasDeadline(d) && condition(&d.Status, appsv1.DeploymentProgressing) == nil {
		// Somebody began to care about progress: it counts from now.
		roll.set(&d.Status, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonFound, fmt.Sprintf("Found new replica set %q", rs.Name))
	}
	return nil
}

// create makes the ReplicaSet of the current template, already at the size that
// the strategy allows.
func (roll *rollout) create(ctx context.Context, revision string) error {
	start := time.Now()
	d := roll.d
	rs := roll.build(revision)
	roll.expect.Begin(roll.key)
	defer roll.expect.End(roll.key)
	created, err := roll.Client.AppsV1().ReplicaSets(d.Namespace).Create(ctx, rs, metav1.CreateOptions{})
	existed := false
	switch {
	case apierrors.IsAlreadyExists(err):
		existed = true
		if created, err = roll.resolve(ctx, rs); err != nil {
			return err
		}
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case err != nil:
		message := fmt.Sprintf("Failed to create new replica set %q: %v", rs.Name, err)
		roll.Recorder.Event(d, corev1.EventTypeWarning, reasonCreateError, message)
		if hasDeadline(d) {
			roll.set(&d.Status, appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonCreateError, message)
			err = errors.Join(err, roll.write(ctx, d.Status))
		}
		return err
	default:
		roll.expect.Created(roll.key, created.UID)
		roll.Span("replica set "+created.Name+" created", kind.Kind, d, start)
		if n := replicas(created); n > 0 {
			roll.Recorder.Eventf(d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled up replica set %s from 0 to %d", created.Name, n)
		}
	}
	roll.newest = created
	setRevision(d, revision)
	if !existed && hasDeadline(d) {
		roll.set(&d.Status, appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonNewSet, fmt.Sprintf("Created new replica set %q", created.Name))
	}
	return nil
}

// resolve handles a name that is taken. It is ours already if it has our template
// and owner, and the cache only lags; otherwise two templates have the same hash,
// and the collision count gives the next try another name.
func (roll *rollout) resolve(ctx context.Context, rs *appsv1.ReplicaSet) (*appsv1.ReplicaSet, error) {
	d := roll.d
	live, err := roll.Client.AppsV1().ReplicaSets(d.Namespace).Get(ctx, rs.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil && ref.UID == d.UID && sameTemplate(&d.Spec.Template, &live.Spec.Template) {
		return live, nil
	}
	status := *roll.cached.Status.DeepCopy()
	count := int32(1)
	if status.CollisionCount != nil {
		count = *status.CollisionCount + 1
	}
	status.CollisionCount = &count
	if err := roll.write(ctx, status); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("hash collision of replica set %q: trying again with collision count %d", rs.Name, count)
}

func (roll *rollout) build(revision string) *appsv1.ReplicaSet {
	d := roll.d
	hash := TemplateHash(&d.Spec.Template, d.Status.CollisionCount)
	template := *d.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withLabel(selector.MatchLabels, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            replicaSetName(d.Name, hash),
			Namespace:       d.Namespace,
			Labels:          maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kind)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        new(int32),
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        template,
		},
	}
	size := newestSize(d, append(slices.Clone(roll.old), rs), rs)
	rs.Spec.Replicas = &size
	annotate(d, rs, revision, false)
	journey.Inherit(rs, d)
	return rs
}

// replicaSetName cuts the Deployment's name if the whole were too long.
func replicaSetName(deployment, hash string) string {
	if most := validation.DNS1123SubdomainMaxLength - len("-") - len(hash); len(deployment) > most {
		deployment = deployment[:most]
	}
	return deployment + "-" + hash
}

func withLabel(m map[string]string, hash string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	out[hashLabel] = hash
	return out
}

// scale sets a ReplicaSet's size and the annotations that remember for which
// declared number that was. It writes only what differs and says whether the size did.
func (roll *rollout) scale(ctx context.Context, rs *appsv1.ReplicaSet, size int32) (bool, error) {
	d := roll.d
	before := replicas(rs)
	out := rs.DeepCopy()
	annotated := annotateSizes(out, declared(d), declared(d)+maxSurge(d))
	if before == size && !annotated {
		return false, nil
	}
	start := time.Now()
	out.Spec.Replicas = &size
	updated, err := roll.Client.AppsV1().ReplicaSets(rs.Namespace).Update(ctx, out, metav1.UpdateOptions{})
	if err != nil {
		return false, err
	}
	roll.replace(rs, updated)
	if before == size {
		return false, nil
	}
	direction := "up"
	if size < before {
		direction = "down"
	}
	roll.Recorder.Eventf(d, corev1.EventTypeNormal, "ScalingReplicaSet", "Scaled %s replica set %s from %d to %d", direction, rs.Name, before, size)
	roll.Span(fmt.Sprintf("replica set %s scaled from %d to %d", rs.Name, before, size), kind.Kind, d, start)
	return true, nil
}

// replace puts the written form of a set in the place of the cached one, so that
// the status counts what was just decided.
func (roll *rollout) replace(rs, updated *appsv1.ReplicaSet) {
	if roll.newest != nil && roll.newest.UID == rs.UID {
		roll.newest = updated
	}
	for i := range roll.old {
		if roll.old[i].UID == rs.UID {
			roll.old[i] = updated
		}
	}
}

// prune deletes the oldest sets beyond the history limit that have no pods.
func (roll *rollout) prune(ctx context.Context) error {
	if roll.d.Spec.RevisionHistoryLimit == nil {
		return nil
	}
	old := slices.DeleteFunc(slices.Clone(roll.old), func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	excess := len(old) - int(*roll.d.Spec.RevisionHistoryLimit)
	if excess <= 0 {
		return nil
	}
	slices.SortStableFunc(old, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	for _, rs := range old[:excess] {
		if rs.Status.Replicas != 0 || replicas(rs) != 0 || rs.Generation > rs.Status.ObservedGeneration {
			continue
		}
		err := roll.Client.AppsV1().ReplicaSets(rs.Namespace).Delete(ctx, rs.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		roll.expect.Deleted(roll.key, rs.UID)
	}
	return nil
}
