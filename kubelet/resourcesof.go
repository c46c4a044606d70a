package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/kubelet/affinity"
	"github.com/periplus/periplus/kubelet/devices"
	"github.com/periplus/periplus/kubelet/dra"
	"github.com/periplus/periplus/linux/numa"
	"github.com/periplus/periplus/linux/podcgroup"
)

// particular is what containers get that is not just an amount: devices of plug-ins,
// of claims, processors of their own.
type particular struct {
	k       *Kubelet
	devices *devices.Registry
	claims  *dra.Claims
	places  *affinity.Assigner // nil: the policies are none
}

func newParticular(k *Kubelet) (*particular, error) {
	p := &particular{k: k}
	var err error
	p.devices, err = devices.New(devices.Config{Dir: filepath.Join(k.cfg.RootDir, "device-plugins"), Changed: k.node.Changed, Log: k.log})
	if err != nil {
		return nil, err
	}
	p.claims = dra.New(dra.Config{Node: k.cfg.NodeName, Client: k.cfg.Client, Dir: k.cfg.RootDir, Log: k.log})
	if a := k.cfg.Affinity; a != nil && a.On() {
		reserved := k.cfg.Node.Reserved
		p.places, err = affinity.New(affinity.Config{
			Policies: *a, Machine: numa.Read(), ReservedMilliCPU: reserved.Cpu().MilliValue(), ReservedMemory: reserved.Memory().Value(),
			Dir: k.cfg.RootDir, Devices: p.devices.Nodes, Changed: p.shareChanged, Log: k.log,
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// DevicePlugins and ResourceDrivers take plug-ins that register by the directory
// plugins_registry: name, socket, versions.
func (k *Kubelet) DevicePlugins() *devices.Registry { return k.particular.devices }

// ResourceDrivers are those of dynamic resources.
func (k *Kubelet) ResourceDrivers() *dra.Claims { return k.particular.claims }

// admit gives a pod what it gets, or says why it cannot have it.
func (p *particular) admit(pod *corev1.Pod) (reason, message string, ok bool) {
	if p.places != nil {
		if err := p.places.Admit(pod, podcgroup.QOS(pod)); errors.Is(err, affinity.ErrLocality) {
			return affinity.LocalityReason, err.Error(), false
		} else if err != nil {
			return unexpected(err)
		}
	}
	var prefer func(string) []int
	if p.places != nil {
		prefer = func(container string) []int { return p.places.Place(pod.UID, container) }
	}
	if err := p.devices.Allocate(p.k.ctx, pod, prefer); err != nil {
		p.free(pod.UID)
		return unexpected(err)
	}
	return "", "", true
}

func unexpected(err error) (reason, message string, ok bool) {
	return "UnexpectedAdmissionError", fmt.Sprintf("Allocate failed due to %v, which is unexpected", err), false
}

// free takes back what needs no driver.
func (p *particular) free(pod types.UID) {
	p.devices.Free(pod)
	if p.places != nil {
		p.places.Free(pod)
	}
}

// keep takes back what pods have that are gone.
func (p *particular) keep(ctx context.Context, known func(types.UID) bool) {
	p.devices.Keep(known)
	if p.places != nil {
		p.places.Keep(known)
	}
	for _, uid := range p.claims.Users() {
		if known(uid) {
			continue
		}
		if err := p.claims.Unprepare(ctx, uid); err != nil {
			p.k.log.Warn("the claims of a pod that is gone are still prepared", base.KeyUID, uid, base.KeyError, err)
		}
	}
}

// configure adds to a container's configuration what it was given.
func (p *particular) configure(ctx context.Context, pod *corev1.Pod, c *corev1.Container, config *runtimeapi.ContainerConfig) error {
	for _, a := range p.devices.For(pod.UID, c.Name) {
		r := a.Response
		for _, name := range sortedKeys(r.GetEnvs()) {
			if !slices.ContainsFunc(config.Envs, func(kv *runtimeapi.KeyValue) bool { return kv.Key == name }) { // the pod's own win
				config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte(r.GetEnvs()[name])})
			}
		}
		for _, d := range r.GetDevices() {
			config.Devices = append(config.Devices, &runtimeapi.Device{HostPath: d.HostPath, ContainerPath: d.ContainerPath, Permissions: d.Permissions})
		}
		for _, m := range r.GetMounts() {
			if !slices.ContainsFunc(config.Mounts, func(o *runtimeapi.Mount) bool { return o.ContainerPath == m.ContainerPath }) {
				config.Mounts = append(config.Mounts, &runtimeapi.Mount{HostPath: m.HostPath, ContainerPath: m.ContainerPath, Readonly: m.ReadOnly})
			}
		}
		maps.Copy(config.Annotations, r.GetAnnotations())
		for _, d := range r.GetCdiDevices() {
			config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: d.Name})
		}
	}
	if dra.Wanted(pod) {
		names, err := p.claims.Devices(pod, c)
		if err != nil {
			return err
		}
		for _, name := range names {
			config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: name})
		}
	}
	if p.places != nil {
		a := p.places.Of(pod.UID, c.Name)
		config.Linux.Resources.CpusetCpus, config.Linux.Resources.CpusetMems = a.CPUs, a.Memory
	}
	return p.devices.BeforeStart(ctx, pod.UID, c.Name)
}

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// shareChanged gives running containers that share processors the new share.
func (p *particular) shareChanged() {
	k := p.k
	if k.ctx == nil || k.ctx.Err() != nil {
		return
	}
	k.tasks.Go(func() {
		for _, w := range k.active() {
			pod := w.admittedPod()
			if pod == nil {
				continue
			}
			for name, id := range w.runningContainers() {
				if p.places.Exclusive(pod.UID, name) {
					continue
				}
				_, err := k.cfg.Runtime.UpdateContainerResources(k.ctx, &runtimeapi.UpdateContainerResourcesRequest{
					ContainerId: id, Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: p.places.Of(pod.UID, name).CPUs}})
				if err != nil && k.ctx.Err() == nil && !isNotFound(err) {
					k.log.Warn("a container keeps processors that are not shared any more", base.KeyID, id, base.KeyError, err)
				}
			}
		}
	})
}

// runningContainers are the IDs of running containers, by name.
func (w *worker) runningContainers() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.liveByName
}

// RunDevicePlugins takes registrations of device plug-ins until ctx ends, beside Run.
// A node that cannot have them goes on without.
func (k *Kubelet) RunDevicePlugins(ctx context.Context) error {
	if err := k.particular.devices.Run(ctx); err != nil {
		k.log.Warn("device plug-ins cannot register", base.KeyError, err)
		<-ctx.Done()
	}
	return nil
}
