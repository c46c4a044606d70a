package app

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/controllers"
	"github.com/periplus/periplus/csi"
	"github.com/periplus/periplus/csi/local"
	"github.com/periplus/periplus/csi/registrar"
	"github.com/periplus/periplus/csi/sidecar"
	"github.com/periplus/periplus/journey"
	"github.com/periplus/periplus/kubelet"
	"github.com/periplus/periplus/volume"
	volumecsi "github.com/periplus/periplus/volume/csi"
)

// csiRole lets nodes do the duties of a driver's sidecars (csi/sidecar).
const csiRole = "periplus:csi-sidecars"

func (c *Config) localVolumesDir() string { return filepath.Join(c.StateDir, "local-volumes") }

// drivers are the storage drivers that this binary brings. They are opened when
// the first volume needs them.
func (c *Config) drivers(log *slog.Logger) *csi.Drivers {
	all := csi.NewDrivers()
	all.Builtin(local.Name, func() (*csi.Driver, error) {
		s, err := local.Open(local.Config{Dir: c.localVolumesDir(), Node: c.NodeName, Version: Release, Log: log})
		if err != nil {
			return nil, err
		}
		return csi.InProcess(s), nil
	})
	return all
}

// csiVolumes mounts the volumes of drivers; without a client it only unmounts.
func (c *Config) csiVolumes(drivers *csi.Drivers, client kubernetes.Interface, record journey.Recorder, changed func()) *volumecsi.Plugin {
	return volumecsi.New(volumecsi.Config{
		Root: c.kubeletDir(), Node: c.NodeName, Drivers: drivers, Client: client, Changed: changed,
		Step: func(r volume.Request, driver, step string, start time.Time) {
			s := journey.Step("volumes", step, "Pod", r.Pod, start).On(c.NodeName).With("driver", driver)
			if r.Claim != nil {
				s = s.With(journey.AttrClaim, r.Claim.Name, "volume", r.Claim.Spec.VolumeName)
			}
			record.Record(s)
		},
	})
}

// storageLabels say where volumes of the node are.
func (c *Config) storageLabels() map[string]string {
	return map[string]string{local.TopologyKey: c.NodeName}
}

// storageParts find drivers and do the duties of their sidecars, beside the kubelet k.
func (w *worker) storageParts(c kubernetes.Interface, k *kubelet.Kubelet, drivers *csi.Drivers, volumes *volumecsi.Plugin, events controllers.EventSource) []base.Component {
	log := w.log.With(base.KeyComponent, "csi")
	r := registrar.New(registrar.Config{
		Node: w.config.NodeName, Dir: filepath.Join(w.config.kubeletDir(), "plugins_registry"), Client: c, Drivers: drivers,
		Builtin:    []registrar.Builtin{{Name: local.Name, NodeID: w.config.NodeName, TopologyKeys: []string{local.TopologyKey}}},
		Registered: k.Registered(), NodeObject: k.Node, Log: log,
		Others: map[string]registrar.Other{registerapi.DevicePlugin: k.DevicePlugins(), registerapi.DRAPlugin: k.ResourceDrivers()},
	})
	duties := sidecar.Controllers(sidecar.Config{Node: w.config.NodeName, Drivers: drivers, NodeObject: k.Node, Staged: volumes.Staged})
	env := &controllers.Env{Client: c, Informers: w.shared(), Events: events, Journey: w.record, Log: log}
	return []base.Component{
		{Name: "storage drivers", Run: func(ctx context.Context) error {
			defer drivers.Close()
			if err := volumes.CleanStaged(ctx); err != nil {
				log.Warn("volumes that no pod uses are still mounted", base.KeyError, err)
			}
			return r.Run(ctx)
		}},
		{Name: "storage sidecars", Run: func(ctx context.Context) error { return controllers.Run(ctx, env, duties) }},
	}
}

// ensureStorage makes the objects of the built-in driver: what it can do, the
// default class, and what nodes may do for it. What people have changed stays.
func ensureStorage(ctx context.Context, c kubernetes.Interface) error {
	no, yes := false, true
	file := storagev1.FileFSGroupPolicy
	late := storagev1.VolumeBindingWaitForFirstConsumer
	_, err1 := c.StorageV1().CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: local.Name},
		Spec: storagev1.CSIDriverSpec{AttachRequired: &no, PodInfoOnMount: &no, FSGroupPolicy: &file,
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}},
	}, metav1.CreateOptions{})
	_, err2 := c.StorageV1().StorageClasses().Create(ctx, &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "local", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: local.Name, VolumeBindingMode: &late, AllowVolumeExpansion: &yes,
	}, metav1.CreateOptions{})
	err3 := ensureStorageRole(ctx, c)
	return errors.Join(made(err1), made(err2), err3)
}

func ensureStorageRole(ctx context.Context, c kubernetes.Interface) error {
	meta := metav1.ObjectMeta{Name: csiRole}
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	read := []string{"get", "list", "watch"}
	write := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	_, err1 := c.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		rule("", write, "persistentvolumes"),
		rule("", []string{"get", "list", "watch", "update", "patch"}, "persistentvolumeclaims", "persistentvolumeclaims/status"),
		rule(storagev1.GroupName, read, "storageclasses", "csinodes", "csidrivers"),
		rule(storagev1.GroupName, []string{"get", "list", "watch", "update", "patch"}, "volumeattachments", "volumeattachments/status"),
	}}, metav1.CreateOptions{})
	_, err2 := c.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:nodes"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: csiRole},
	}, metav1.CreateOptions{})
	return errors.Join(made(err1), made(err2))
}

// made says that an object that is there already is no failure.
func made(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
