package registrar

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	csipb "github.com/container-storage-interface/spec/lib/go/csi"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type drivers = []storagev1.CSINodeDriver

// withBuiltin adds the drivers that are always there.
func (r *Registrar) withBuiltin(list drivers) drivers {
	for _, b := range r.config.Builtin {
		list = with(storagev1.CSINodeDriver{Name: b.Name, NodeID: b.NodeID, TopologyKeys: b.TopologyKeys})(list)
	}
	return list
}

// with replaces a driver's entry, or adds it.
func with(d storagev1.CSINodeDriver) func(drivers) drivers {
	return func(list drivers) drivers {
		i := slices.IndexFunc(list, func(have storagev1.CSINodeDriver) bool { return have.Name == d.Name })
		if i < 0 {
			return append(list, d)
		}
		list[i] = d
		return list
	}
}

func without(name string) func(drivers) drivers {
	return func(list drivers) drivers {
		return slices.DeleteFunc(list, func(d storagev1.CSINodeDriver) bool { return d.Name == name })
	}
}

// keep changes the node's CSINode, making it if needed.
func (r *Registrar) keep(ctx context.Context, change func(drivers) drivers) error {
	client := r.config.Client.StorageV1().CSINodes()
	for {
		have, err := client.Get(ctx, r.config.Node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			node := r.config.NodeObject()
			if node == nil {
				return fmt.Errorf("node %s is not registered", r.config.Node)
			}
			_, err = client.Create(ctx, &storagev1.CSINode{
				ObjectMeta: metav1.ObjectMeta{Name: r.config.Node, OwnerReferences: []metav1.OwnerReference{
					{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}}},
				Spec: storagev1.CSINodeSpec{Drivers: change(drivers{})},
			}, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				continue
			}
			return err
		}
		if err != nil {
			return err
		}
		out := have.DeepCopy()
		if out.Spec.Drivers = change(out.Spec.Drivers); out.Spec.Drivers == nil {
			out.Spec.Drivers = drivers{}
		}
		if apiequality.Semantic.DeepEqual(have.Spec, out.Spec) {
			return nil
		}
		if _, err = client.Update(ctx, out, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// announce puts a driver into the CSINode and its topology on the node.
func (r *Registrar) announce(ctx context.Context, name string, info *csipb.NodeGetInfoResponse) error {
	segments := info.GetAccessibleTopology().GetSegments()
	if len(segments) > 0 {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": segments}})
		if err != nil {
			return err
		}
		if _, err := r.config.Client.CoreV1().Nodes().Patch(ctx, r.config.Node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("topology labels of node %s: %w", r.config.Node, err)
		}
	}
	d := storagev1.CSINodeDriver{Name: name, NodeID: info.GetNodeId(), TopologyKeys: slices.Sorted(maps.Keys(segments))}
	if n := info.GetMaxVolumesPerNode(); n > 0 {
		count := int32(min(n, 1<<31-1))
		d.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
	}
	return r.keep(ctx, with(d))
}
