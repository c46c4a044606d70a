package sidecar

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/journey"
)

// create asks the driver for the claim's volume and describes it.
func (p *provisioner) create(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, driver string) (*corev1.PersistentVolume, error) {
	if claim.Spec.Selector != nil {
		return nil, &refusal{"claim Selector is not supported"}
	}
	d, err := p.Drivers.Get(driver)
	if err != nil {
		return nil, err
	}
	can, err := d.Capabilities(ctx)
	if err != nil {
		return nil, err
	}
	if !can.CreateDelete {
		return nil, &refusal{fmt.Sprintf("CSI driver %s cannot create volumes", driver)}
	}
	secret := func(name, namespace string) (*corev1.SecretReference, error) {
		return classSecret(class, claim, name, namespace)
	}
	provisioning, err := secret(csi.ParameterProvisionerSecret, csi.ParameterProvisionerNamespace)
	if err != nil {
		return nil, err
	}
	secrets, err := p.secrets(ctx, provisioning)
	if err != nil {
		return nil, err
	}
	block, fsType := csi.IsBlock(claim.Spec.VolumeMode), fsTypeOf(class)
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	req := &csipb.CreateVolumeRequest{
		Name:               volumeName(claim),
		CapacityRange:      &csipb.CapacityRange{RequiredBytes: size.Value()},
		VolumeCapabilities: []*csipb.VolumeCapability{csi.Capability(block, csi.AccessMode(claim.Spec.AccessModes, can), fsType, class.MountOptions, "")},
		Parameters:         driverParameters(class.Parameters),
		Secrets:            secrets,
	}
	if limit, ok := claim.Spec.Resources.Limits[corev1.ResourceStorage]; ok {
		req.CapacityRange.LimitBytes = limit.Value()
	}
	if req.VolumeContentSource, err = p.source(claim, can); err != nil {
		return nil, err
	}
	if can.Topology {
		if req.AccessibilityRequirements, err = p.requirement(driver); err != nil {
			return nil, err
		}
	}
	call, cancel := context.WithTimeout(ctx, csi.CallTimeout)
	defer cancel()
	resp, err := d.CreateVolume(call, req)
	if err != nil {
		return nil, err
	}
	return p.describe(claim, class, driver, resp.GetVolume(), fsType, provisioning, secret)
}

// describe makes the PersistentVolume of what the driver has made.
func (p *provisioner) describe(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, driver string, made *csipb.Volume, fsType string,
	provisioning *corev1.SecretReference, secret func(name, namespace string) (*corev1.SecretReference, error)) (*corev1.PersistentVolume, error) {
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	source := &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: made.GetVolumeId(), VolumeAttributes: map[string]string{
		"storage.kubernetes.io/csiProvisionerIdentity": p.Node + "-" + driver,
	}}
	maps.Copy(source.VolumeAttributes, made.GetVolumeContext())
	if !csi.IsBlock(claim.Spec.VolumeMode) {
		source.FSType = fsType
	}
	var err error
	for _, s := range []struct {
		field           **corev1.SecretReference
		name, namespace string
	}{
		{&source.ControllerPublishSecretRef, csi.ParameterPublishSecret, csi.ParameterPublishNamespace},
		{&source.NodeStageSecretRef, csi.ParameterStageSecret, csi.ParameterStageNamespace},
		{&source.NodePublishSecretRef, csi.ParameterNodePublishSecret, csi.ParameterNodePublishNamespace},
		{&source.ControllerExpandSecretRef, csi.ParameterExpandSecret, csi.ParameterExpandNamespace},
		{&source.NodeExpandSecretRef, csi.ParameterNodeExpandSecret, csi.ParameterNodeExpandNamespace},
	} {
		if *s.field, err = secret(s.name, s.namespace); err != nil {
			return nil, err
		}
	}
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if n := made.GetCapacityBytes(); n > 0 {
		size = *resource.NewQuantity(n, resource.BinarySI)
	}
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(claim), Annotations: map[string]string{volume.AnnDynamicallyProvisioned: driver}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: policy, AccessModes: claim.Spec.AccessModes, MountOptions: class.MountOptions,
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: size},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: source},
			StorageClassName:       class.Name, VolumeMode: claim.Spec.VolumeMode, NodeAffinity: affinityOf(made.GetAccessibleTopology()),
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion},
		},
	}
	if policy == corev1.PersistentVolumeReclaimDelete {
		pv.Finalizers = []string{finalizer}
	}
	if provisioning != nil {
		pv.Annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] = provisioning.Name
		pv.Annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] = provisioning.Namespace
	}
	journey.Inherit(pv, claim)
	return pv, nil
}

// source says what a claim's volume is a copy of.
func (p *provisioner) source(claim *corev1.PersistentVolumeClaim, can csi.Capabilities) (*csipb.VolumeContentSource, error) {
	from := claim.Spec.DataSource
	if from == nil {
		return nil, nil
	}
	if from.Kind != "PersistentVolumeClaim" || from.APIGroup != nil && *from.APIGroup != "" {
		return nil, &refusal{fmt.Sprintf("data source of kind %s is not served", from.Kind)}
	}
	if !can.Clone {
		return nil, &refusal{"the CSI driver cannot clone volumes"}
	}
	origin, err := p.claims.PersistentVolumeClaims(claim.Namespace).Get(from.Name)
	if err != nil {
		return nil, fmt.Errorf("error getting PVC %s (namespace %q) from api server: %w", from.Name, claim.Namespace, err)
	}
	if origin.Status.Phase != corev1.ClaimBound {
		return nil, fmt.Errorf("the PVC DataSource %s must have a status of Bound.  Got %v", from.Name, origin.Status.Phase)
	}
	pv, err := p.volumes.Get(origin.Spec.VolumeName)
	if err != nil {
		return nil, err
	}
	if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != claim.Annotations[volume.AnnStorageProvisioner] {
		return nil, &refusal{fmt.Sprintf("the source volume %s belongs to another driver", pv.Name)}
	}
	return &csipb.VolumeContentSource{Type: &csipb.VolumeContentSource_Volume{Volume: &csipb.VolumeContentSource_VolumeSource{VolumeId: pv.Spec.CSI.VolumeHandle}}}, nil
}

// requirement says that the volume must be reachable from this node.
func (p *provisioner) requirement(driver string) (*csipb.TopologyRequirement, error) {
	csiNode, err := p.nodes.Get(p.Node)
	if err != nil {
		return nil, fmt.Errorf("error getting CSINode for selected node %q: %w", p.Node, err)
	}
	node := p.NodeObject()
	if node == nil {
		return nil, fmt.Errorf("node %s is not registered yet", p.Node)
	}
	segments := map[string]string{}
	if !slices.ContainsFunc(csiNode.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver }) {
		return nil, fmt.Errorf("CSINode %s does not have driver %s yet", p.Node, driver)
	}
	for _, d := range csiNode.Spec.Drivers {
		if d.Name != driver {
			continue
		}
		for _, key := range d.TopologyKeys {
			value, ok := node.Labels[key]
			if !ok {
				return nil, fmt.Errorf("topology labels from selected node %s does not have the key %s", p.Node, key)
			}
			segments[key] = value
		}
	}
	if len(segments) == 0 {
		return nil, nil
	}
	t := []*csipb.Topology{{Segments: segments}}
	return &csipb.TopologyRequirement{Requisite: t, Preferred: t}, nil
}

// affinityOf turns a volume's topology into the nodes that can have it.
func affinityOf(topology []*csipb.Topology) *corev1.VolumeNodeAffinity {
	var terms []corev1.NodeSelectorTerm
	for _, t := range topology {
		var term corev1.NodeSelectorTerm
		for _, key := range slices.Sorted(maps.Keys(t.GetSegments())) {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{t.GetSegments()[key]}})
		}
		if len(term.MatchExpressions) > 0 {
			terms = append(terms, term)
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

// inTopologies reports whether a node is where a class allows volumes.
func inTopologies(terms []corev1.TopologySelectorTerm, labels map[string]string) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			return !slices.Contains(e.Values, labels[e.Key])
		})
	})
}

func fsTypeOf(class *storagev1.StorageClass) string {
	if t := class.Parameters[csi.ParameterFSType]; t != "" {
		return t
	}
	return class.Parameters["fsType"]
}

// driverParameters are those that are the driver's, not the sidecars'.
func driverParameters(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range all {
		if !strings.HasPrefix(k, "csi.storage.k8s.io/") {
			out[k] = v
		}
	}
	return out
}

// classSecret reads which secret a class names, with the claim's name filled in.
func classSecret(class *storagev1.StorageClass, claim *corev1.PersistentVolumeClaim, name, namespace string) (*corev1.SecretReference, error) {
	n, ns := class.Parameters[name], class.Parameters[namespace]
	if n == "" && ns == "" {
		return nil, nil
	}
	if n == "" || ns == "" {
		return nil, &refusal{fmt.Sprintf("either name and namespace for %s secrets specified, Both must be specified", strings.TrimSuffix(strings.TrimPrefix(name, "csi.storage.k8s.io/"), "-secret-name"))}
	}
	fill := strings.NewReplacer("${pv.name}", volumeName(claim), "${pvc.name}", claim.Name, "${pvc.namespace}", claim.Namespace)
	return &corev1.SecretReference{Name: fill.Replace(n), Namespace: fill.Replace(ns)}, nil
}

func secretOf(annotations map[string]string, name, namespace string) *corev1.SecretReference {
	if annotations[name] == "" {
		return nil
	}
	return &corev1.SecretReference{Name: annotations[name], Namespace: annotations[namespace]}
}
