package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/periplus/periplus/client/conditions"
	"github.com/periplus/periplus/insight"
)

const defaultClass = "storageclass.kubernetes.io/is-default-class"

// claimRules: a claim has no volume.
func claimRules() []Rule {
	return []Rule{
		pending("claim-class-missing", "the claim's StorageClass does not exist", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			class := className(s, c)
			if class == "" || !insight.Missing[*storagev1.StorageClass](s, "", class) || matching(s, c) != nil {
				return nil
			}
			return &insight.Finding{What: fmt.Sprintf("there is no StorageClass %q%s", class, like(class, names[*storagev1.StorageClass](s, ""))),
				Evidence: append([]string{"spec: storageClassName is " + class, "classes: " + strings.Join(orNone(names[*storagev1.StorageClass](s, "")), ", ")}, eventLines(s, c, "ProvisioningFailed")...),
				Mend:     []insight.Mend{remake(c, "a class that exists")}}
		}),
		pending("claim-no-class", "the claim names no StorageClass and none is the default", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			if c.Spec.StorageClassName != nil || defaultOf(s) != "" || !insight.Read[*storagev1.StorageClass](s) || matching(s, c) != nil {
				return nil
			}
			f := &insight.Finding{What: "the claim names no StorageClass, and none is the default", Evidence: append([]string{"classes: " + strings.Join(orNone(names[*storagev1.StorageClass](s, "")), ", ")}, eventLines(s, c, "FailedBinding")...)}
			if all := insight.All[*storagev1.StorageClass](s, ""); len(all) == 1 {
				f.Mend = []insight.Mend{{Command: fmt.Sprintf(`peri kubectl annotate storageclass %s %s=true`, all[0].Name, defaultClass), Note: "makes the only class the default",
					Change: &insight.Change{Verb: "patch", Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses", Name: all[0].Name, Patch: "merge", Body: fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, defaultClass)}}}
			} else {
				f.Mend = []insight.Mend{insight.Do("makes one the default", fmt.Sprintf("peri kubectl annotate storageclass CLASS %s=true", defaultClass))}
			}
			return f
		}),
		pending("claim-volume-taken", "the volume that the claim names belongs to another claim, or does not exist", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			if c.Spec.VolumeName == "" {
				return nil
			}
			v, ok := insight.Get[*corev1.PersistentVolume](s, "", c.Spec.VolumeName)
			switch {
			case !ok && insight.Read[*corev1.PersistentVolume](s):
				return &insight.Finding{What: fmt.Sprintf("the claim asks for volume %q, which does not exist%s", c.Spec.VolumeName, like(c.Spec.VolumeName, names[*corev1.PersistentVolume](s, ""))), Evidence: eventLines(s, c, "FailedBinding"), Mend: []insight.Mend{remake(c, "a volume that exists, or none")}}
			case ok && v.Spec.ClaimRef != nil && (v.Spec.ClaimRef.Name != c.Name || v.Spec.ClaimRef.Namespace != c.Namespace):
				f := &insight.Finding{What: fmt.Sprintf("volume %q belongs to claim %s/%s", v.Name, v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name), Evidence: append([]string{fmt.Sprintf("status: volume %s is %s", v.Name, v.Status.Phase)}, eventLines(s, c, "FailedBinding")...)}
				if v.Status.Phase == corev1.VolumeReleased {
					f.Why = "That claim is gone; the volume is kept for a person to look at, and must be released by hand."
					f.Mend = []insight.Mend{insight.Do("lets another claim have it, with the data that is on it", fmt.Sprintf(`peri kubectl patch pv %s --type=json -p '[{"op":"remove","path":"/spec/claimRef"}]'`, v.Name))}
				}
				return f
			}
			return nil
		}),
		pending("claim-provisioning-failed", "the driver cannot make the volume", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			e := s.LastEvent(c, "ProvisioningFailed")
			if e == nil || strings.Contains(e.Message, "storageclass.storage.k8s.io") {
				return nil
			}
			class := className(s, c)
			f := &insight.Finding{What: fmt.Sprintf("the driver of StorageClass %q cannot make the volume", class), Evidence: []string{shorten(s.EventLine(e))}, Mend: []insight.Mend{insight.Do("what does the class ask for?", "peri kubectl describe storageclass "+class)}}
			if sc, ok := insight.Get[*storagev1.StorageClass](s, "", class); ok {
				f.Evidence = append(f.Evidence, "spec: its provisioner is "+sc.Provisioner)
			}
			if strings.Contains(e.Message, "ResourceExhausted") || strings.Contains(e.Message, "no space") || strings.Contains(e.Message, "not enough") {
				f.Why = "There is not as much room left where the driver keeps its volumes."
				f.Mend = []insight.Mend{remake(c, "a smaller size")}
			}
			return f
		}),
		pending("claim-waits-for-pod", "the class waits for a pod that uses the claim, and there is none", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			sc, ok := insight.Get[*storagev1.StorageClass](s, "", className(s, c))
			if !ok || sc.VolumeBindingMode == nil || *sc.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
				return nil
			}
			for _, p := range insight.All[*corev1.Pod](s, c.Namespace) {
				if slices.Contains(insight.PodClaims(p), c.Name) {
					return nil // why that pod has no node is found there
				}
			}
			return &insight.Finding{What: fmt.Sprintf("StorageClass %q makes the volume when the first pod uses the claim, and no pod does yet", sc.Name), Why: "That is as it should be: the volume is made where the pod fits.",
				Evidence: append([]string{"spec: volumeBindingMode is WaitForFirstConsumer"}, eventLines(s, c, "WaitForFirstConsumer")...)}
		}),
		pending("claim-driver-missing", "no driver serves the claim's StorageClass", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			sc, ok := insight.Get[*storagev1.StorageClass](s, "", className(s, c))
			if !ok || sc.Provisioner == "kubernetes.io/no-provisioner" || !insight.Missing[*storagev1.CSIDriver](s, "", sc.Provisioner) {
				return nil
			}
			return &insight.Finding{Level: insight.Sign, Why: "A driver need not be registered, but it has not made the volume either.", What: fmt.Sprintf("nobody makes the volume: the driver %q of StorageClass %q is not registered in the cluster%s", sc.Provisioner, sc.Name, like(sc.Provisioner, names[*storagev1.CSIDriver](s, ""))), Evidence: append([]string{"drivers: " + strings.Join(orNone(names[*storagev1.CSIDriver](s, "")), ", ")}, eventLines(s, c, "ExternalProvisioning")...), Mend: []insight.Mend{remake(c, "a class of a driver that is there")}}
		}),
		pending("claim-no-volume", "no volume matches the claim, and the class makes none", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			class := className(s, c)
			sc, ok := insight.Get[*storagev1.StorageClass](s, "", class)
			if class != "" && (!ok || sc.Provisioner != "kubernetes.io/no-provisioner") || class == "" && c.Spec.StorageClassName == nil || c.Spec.VolumeName != "" || matching(s, c) != nil {
				return nil
			}
			f := &insight.Finding{What: "no PersistentVolume matches the claim, and its class makes none", Evidence: eventLines(s, c, "FailedBinding")}
			for _, v := range insight.All[*corev1.PersistentVolume](s, "") {
				if bad := mismatch(v, c, class); bad != "" {
					f.Evidence = append(f.Evidence, fmt.Sprintf("volume %s: %s", v.Name, bad))
				}
			}
			if d := defaultOf(s); d != "" {
				f.Mend = []insight.Mend{remake(c, "storageClassName: "+d+", which makes volumes")}
			}
			return f
		}),
		on("claim-lost", "the claim's volume is gone", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) []insight.Finding {
			if c.Status.Phase != corev1.ClaimLost {
				return nil
			}
			return one(&insight.Finding{What: fmt.Sprintf("volume %q of the claim is gone, with its data", c.Spec.VolumeName), Evidence: append([]string{"status: phase Lost"}, eventLines(s, c, "ClaimLost")...), Mend: []insight.Mend{remake(c, "no volumeName, then restore the data")}})
		}),
		on("claim-resize", "the claim cannot be made larger", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) []insight.Finding {
			e := s.LastEvent(c, "VolumeResizeFailed", "ExternalExpanding", "FileSystemResizeRequired")
			want, have := c.Spec.Resources.Requests[corev1.ResourceStorage], c.Status.Capacity[corev1.ResourceStorage]
			if c.Status.Phase != corev1.ClaimBound || e == nil || e.Reason != "VolumeResizeFailed" || want.Cmp(have) <= 0 {
				return nil
			}
			return one(&insight.Finding{What: fmt.Sprintf("the volume cannot be made larger: it has %s, %s are wanted", have.String(), want.String()), Evidence: []string{shorten(s.EventLine(e))}})
		}),
		pending("claim-pending", "the claim is not bound", func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding {
			if s.Now.Sub(c.CreationTimestamp.Time) < patience {
				return nil
			}
			return &insight.Finding{Level: insight.Effect, What: "the claim is not bound to a volume", Evidence: eventLines(s, c, "FailedBinding", "WaitForPodScheduled", "WaitForFirstConsumer", "ExternalProvisioning", "Provisioning")}
		}),
	}
}

func pending(name, summary string, check func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *insight.Finding) Rule {
	return on(name, summary, func(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) []insight.Finding {
		if c.Status.Phase == corev1.ClaimBound || c.Status.Phase == corev1.ClaimLost || c.DeletionTimestamp != nil {
			return nil
		}
		return one(check(s, c))
	})
}

// className is the class that a claim gets; empty for none at all.
func className(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) string {
	if c.Spec.StorageClassName != nil {
		return *c.Spec.StorageClassName
	}
	return cmp.Or(c.Annotations[corev1.BetaStorageClassAnnotation], defaultOf(s))
}

func defaultOf(s *insight.Snapshot) string {
	for _, sc := range insight.All[*storagev1.StorageClass](s, "") {
		if sc.Annotations[defaultClass] == "true" {
			return sc.Name
		}
	}
	return ""
}

// matching is a free volume that the claim could have, or nil.
func matching(s *insight.Snapshot, c *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	for _, v := range insight.All[*corev1.PersistentVolume](s, "") {
		if mismatch(v, c, className(s, c)) == "" {
			return v
		}
	}
	return nil
}

// mismatch says why a volume does not do for a claim; empty if it does.
func mismatch(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim, class string) string {
	want, have := c.Spec.Resources.Requests[corev1.ResourceStorage], v.Spec.Capacity[corev1.ResourceStorage]
	switch {
	case v.Spec.ClaimRef != nil && (v.Spec.ClaimRef.Name != c.Name || v.Spec.ClaimRef.Namespace != c.Namespace):
		return fmt.Sprintf("belongs to claim %s/%s", v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.Name)
	case v.Spec.StorageClassName != class:
		return fmt.Sprintf("is of class %q, not %q", v.Spec.StorageClassName, class)
	case have.Cmp(want) < 0:
		return fmt.Sprintf("has %s, not %s", have.String(), want.String())
	case !containsAll(v.Spec.AccessModes, c.Spec.AccessModes):
		return fmt.Sprintf("has access modes %v, not %v", v.Spec.AccessModes, c.Spec.AccessModes)
	case v.Status.Phase != "" && v.Status.Phase != corev1.VolumeAvailable && v.Spec.ClaimRef == nil:
		return "is " + string(v.Status.Phase)
	case c.Spec.Selector != nil:
		for k, want := range c.Spec.Selector.MatchLabels {
			if v.Labels[k] != want {
				return fmt.Sprintf("lacks the label %s=%s", k, want)
			}
		}
	}
	return ""
}

func containsAll(have, want []corev1.PersistentVolumeAccessMode) bool {
	return !slices.ContainsFunc(want, func(m corev1.PersistentVolumeAccessMode) bool { return !slices.Contains(have, m) })
}

func orNone(list []string) []string {
	if len(list) == 0 {
		return []string{"none"}
	}
	return list
}

func remake(c *corev1.PersistentVolumeClaim, with string) insight.Mend {
	return insight.Do("makes the claim anew with "+with+" (nothing is on it yet; the spec of a claim cannot be changed)",
		insight.Kubectl(c.Namespace, "get pvc %s -o yaml > claim.yaml && $EDITOR claim.yaml && %s", c.Name, insight.Kubectl(c.Namespace, "replace --force -f claim.yaml")))
}

// mountRules: a volume exists, and does not reach the pod.
func mountRules() []Rule {
	return []Rule{
		mountRule("volume-attached-elsewhere", "the volume is attached to another node", "FailedAttachVolume", func(s *insight.Snapshot, p *corev1.Pod, message string) *insight.Finding {
			if !strings.Contains(message, "Multi-Attach") {
				return nil
			}
			f := &insight.Finding{What: "a volume of the pod is attached to another node, and can be on one node only", Why: "The pod before has not ended, or its node is gone: after that is certain, its VolumeAttachment can go."}
			for _, a := range insight.All[*storagev1.VolumeAttachment](s, "") {
				if a.Spec.Source.PersistentVolumeName == nil || a.Spec.NodeName == p.Spec.NodeName {
					continue
				}
				for _, name := range insight.PodClaims(p) {
					if c, ok := insight.Get[*corev1.PersistentVolumeClaim](s, p.Namespace, name); ok && c.Spec.VolumeName == *a.Spec.Source.PersistentVolumeName {
						f.Evidence = append(f.Evidence, fmt.Sprintf("volume %s of claim %s is attached to node %s", c.Spec.VolumeName, name, a.Spec.NodeName))
						f.Mend = append(f.Mend, insight.Do("if node "+a.Spec.NodeName+" is certainly off", "peri kubectl delete volumeattachment "+a.Name))
					}
				}
			}
			return f
		}),
		mountRule("volume-attach-failed", "a volume cannot be attached to the node", "FailedAttachVolume", func(s *insight.Snapshot, p *corev1.Pod, message string) *insight.Finding {
			if strings.Contains(message, "Multi-Attach") {
				return nil
			}
			return &insight.Finding{What: fmt.Sprintf("a volume of the pod cannot be attached to node %s", p.Spec.NodeName)}
		}),
		mountRule("mount-driver-missing", "the volume's driver is not on the node", "FailedMount", func(s *insight.Snapshot, p *corev1.Pod, message string) *insight.Finding {
			if !strings.Contains(message, "not found in the list of registered CSI drivers") {
				return nil
			}
			return &insight.Finding{What: fmt.Sprintf("the driver of a volume is not registered on node %s", p.Spec.NodeName), Why: "Its DaemonSet does not run there, or its socket is not in the kubelet's plugins_registry."}
		}),
		mountRule("mount-path-type", "a hostPath is not what the pod expects", "FailedMount", func(s *insight.Snapshot, p *corev1.Pod, message string) *insight.Finding {
			if !strings.Contains(message, "hostPath type check failed") {
				return nil
			}
			return &insight.Finding{What: fmt.Sprintf("a hostPath volume is missing on node %s, or of another type", p.Spec.NodeName), Mend: []insight.Mend{workloadOf(s, p).edit("set type: DirectoryOrCreate, or correct the path")}}
		}),
		mountRule("mount-failed", "a volume cannot be mounted", "FailedMount", func(s *insight.Snapshot, p *corev1.Pod, message string) *insight.Finding {
			for _, u := range uses(p) { // a missing ConfigMap or Secret is told by its own rule
				if there, known, _ := lookup(s, p.Namespace, u); known && !there {
					return nil
				}
			}
			return &insight.Finding{Level: insight.Sign, What: fmt.Sprintf("a volume cannot be mounted on node %s", p.Spec.NodeName)}
		}),
	}
}

func mountRule(name, summary, reason string, check func(s *insight.Snapshot, p *corev1.Pod, message string) *insight.Finding) Rule {
	return on(name, summary, func(s *insight.Snapshot, p *corev1.Pod) []insight.Finding {
		e := s.LastEvent(p, reason)
		if e == nil || p.Status.Phase != corev1.PodPending {
			return nil
		}
		if c := conditions.Pod(&p.Status, corev1.PodReadyToStartContainers); c != nil && c.Status == corev1.ConditionTrue {
			return nil // it was mounted later
		}
		f := check(s, p, e.Message)
		if f == nil {
			return nil
		}
		f.Part, f.Evidence = "mounts", append([]string{shorten(s.EventLine(e))}, f.Evidence...)
		return one(f)
	})
}
