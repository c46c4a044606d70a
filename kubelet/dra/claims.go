package dra

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	drapb "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/periplus/periplus/base"
)

// stateName is upstream's; the content is ours.
const stateName = "dra_manager_state"

// prepared is a claim that drivers know of.
type prepared struct {
	Namespace string               `json:"namespace"`
	Name      string               `json:"name"`
	UID       types.UID            `json:"uid"`
	Pods      []types.UID          `json:"pods"`
	Devices   map[string][]*device `json:"devices"` // by driver; an entry is there before the driver is asked
	Done      bool                 `json:"done"`    // all drivers have prepared it
}

// device is what a container needs to use one.
type device struct {
	Requests []string `json:"requests"`
	CDI      []string `json:"cdi"`
	Pool     string   `json:"pool"`
	Name     string   `json:"name"`
}

// Claims prepares claims. Calls for one pod come one after the other.
type Claims struct {
	drivers
	calls sync.Mutex // held during calls to drivers: a claim is prepared once

	known sync.Mutex // guards byKey and what it holds
	byKey map[string]*prepared
}

// New returns Claims that know what an earlier life has prepared.
func New(c Config) *Claims {
	out := &Claims{drivers: drivers{cfg: c, byName: map[string]*driver{}, wipes: map[string]*time.Timer{}}, byKey: map[string]*prepared{}}
	if err := out.load(); err != nil {
		c.Log.Warn("it is not known which resource claims are prepared", base.KeyError, err)
	}
	return out
}

// Close ends the connections.
func (c *Claims) Close() { c.close() }

// Wanted says whether a pod has claims.
func Wanted(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// Prepare makes all claims of a pod usable on this node. It may be repeated.
func (c *Claims) Prepare(ctx context.Context, pod *corev1.Pod) error {
	if !Wanted(pod) {
		return nil
	}
	c.calls.Lock()
	defer c.calls.Unlock()
	if err := c.prepare(ctx, pod); err != nil {
		return fmt.Errorf("prepare dynamic resources: %w", err)
	}
	return nil
}

func (c *Claims) prepare(ctx context.Context, pod *corev1.Pod) error {
	for i := range pod.Spec.ResourceClaims {
		if _, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err != nil {
			return err
		}
	}
	batch := map[string][]*prepared{} // claims by driver that has to be asked
	news := false
	for name, mustCheckOwner := range resourceclaim.PodClaims(pod) {
		claim, err := c.cfg.Client.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("fetch ResourceClaim %s: %w", name, err)
		}
		if mustCheckOwner {
			if err := resourceclaim.IsForPod(pod, claim, false); err != nil {
				return err
			}
		}
		if !resourceclaim.IsReservedForPod(pod, claim, false) {
			return fmt.Errorf("pod %s (%s) is not allowed to use ResourceClaim %s (%s)", pod.Name, pod.UID, name, claim.UID)
		}
		p, added, err := c.note(pod, claim)
		news = news || added
		if err != nil {
			return err
		}
		if p.Done {
			continue
		}
		for d := range p.Devices {
			batch[d] = append(batch[d], p)
		}
	}
	if !news && len(batch) == 0 {
		return nil
	}
	if err := c.save(); err != nil { // before drivers know, so that nothing is forgotten
		return fmt.Errorf("checkpoint ResourceClaim cache: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(batch)) {
		if err := c.ask(ctx, name, batch[name]); err != nil {
			return err
		}
	}
	c.known.Lock()
	for _, list := range batch {
		for _, p := range list {
			p.Done = true
		}
	}
	c.known.Unlock()
	if err := c.save(); err != nil {
		return fmt.Errorf("checkpoint ResourceClaim state: %w", err)
	}
	return nil
}

// note records that a pod uses a claim; added says that this was not known.
func (c *Claims) note(pod *corev1.Pod, claim *resourceapi.ResourceClaim) (p *prepared, added bool, err error) {
	if claim.Status.Allocation == nil {
		return nil, false, fmt.Errorf("ResourceClaim %s: claim is not allocated", claim.Name)
	}
	c.known.Lock()
	defer c.known.Unlock()
	key := claim.Namespace + "/" + claim.Name
	p = c.byKey[key]
	if p != nil && p.UID != claim.UID {
		return nil, false, fmt.Errorf("old ResourceClaim with same name %s and different UID %s still exists (previous pod force-deleted?!)", claim.Name, p.UID)
	}
	if p == nil {
		p = &prepared{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, Devices: map[string][]*device{}}
		for i := range claim.Status.Allocation.Devices.Results {
			p.Devices[claim.Status.Allocation.Devices.Results[i].Driver] = nil
		}
		c.byKey[key] = p
	}
	if !slices.Contains(p.Pods, pod.UID) {
		p.Pods, added = append(p.Pods, pod.UID), true
	}
	return p, added, nil
}

func request(list []*prepared) []*drapb.Claim {
	out := make([]*drapb.Claim, len(list))
	for i, p := range list {
		out[i] = &drapb.Claim{Namespace: p.Namespace, Uid: string(p.UID), Name: p.Name}
	}
	return out
}

// ask lets one driver prepare claims.
func (c *Claims) ask(ctx context.Context, name string, list []*prepared) error {
	client, err := c.get(name)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := client.NodePrepareResources(call, &drapb.NodePrepareResourcesRequest{Claims: request(list)})
	if err != nil {
		return fmt.Errorf("NodePrepareResources: %w", err)
	}
	c.known.Lock()
	defer c.known.Unlock()
	for _, p := range list {
		result, ok := resp.Claims[string(p.UID)]
		switch {
		case !ok:
			return fmt.Errorf("NodePrepareResources skipped 1 ResourceClaims")
		case result.GetError() != "":
			return fmt.Errorf("NodePrepareResources failed for ResourceClaim %s: %s", p.Name, result.GetError())
		}
		p.Devices[name] = nil
		for _, d := range result.GetDevices() {
			p.Devices[name] = append(p.Devices[name], &device{Requests: d.GetRequestNames(), CDI: d.GetCdiDeviceIds(), Pool: d.GetPoolName(), Name: d.GetDeviceName()})
		}
	}
	return nil
}

// Devices returns the CDI names of a container's claims.
func (c *Claims) Devices(pod *corev1.Pod, container *corev1.Container) ([]string, error) {
	c.known.Lock()
	defer c.known.Unlock()
	var out []string
	add := func(claim, request string) error {
		p := c.byKey[pod.Namespace+"/"+claim]
		if p == nil {
			return fmt.Errorf("internal error: unable to get claim info for ResourceClaim %s in namespace %s", claim, pod.Namespace)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Devices)) {
			for _, d := range p.Devices[name] {
				if request != "" && !slices.ContainsFunc(d.Requests, func(r string) bool { return r == request || strings.HasPrefix(r, request+"/") }) {
					continue
				}
				for _, id := range d.CDI {
					if !slices.Contains(out, id) {
						out = append(out, id)
					}
				}
			}
		}
		return nil
	}
	for i := range pod.Spec.ResourceClaims {
		pc := &pod.Spec.ResourceClaims[i]
		name, _, err := resourceclaim.Name(pod, pc)
		if err != nil {
			return nil, err
		}
		if name == nil {
			continue
		}
		for _, want := range container.Resources.Claims {
			if want.Name == pc.Name {
				if err := add(*name, want.Request); err != nil {
					return nil, err
				}
			}
		}
	}
	if e := pod.Status.ExtendedResourceClaimStatus; e != nil {
		for _, m := range e.RequestMappings {
			if m.ContainerName == container.Name {
				if err := add(e.ResourceClaimName, m.RequestName); err != nil {
					return nil, err
				}
			}
		}
	}
	return out, nil
}

// Unprepare gives back what only this pod has used. It may be repeated.
func (c *Claims) Unprepare(ctx context.Context, pod types.UID) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	batch := map[string][]*prepared{}
	var gone []*prepared
	changed := false
	c.known.Lock()
	for _, p := range c.byKey {
		i := slices.Index(p.Pods, pod)
		if i < 0 {
			continue
		}
		if len(p.Pods) > 1 {
			p.Pods = slices.Delete(p.Pods, i, i+1)
			changed = true
			continue
		}
		gone = append(gone, p)
		for d := range p.Devices {
			batch[d] = append(batch[d], p)
		}
	}
	c.known.Unlock()
	for _, name := range slices.Sorted(maps.Keys(batch)) {
		if err := c.giveBack(ctx, name, batch[name]); err != nil {
			return fmt.Errorf("unprepare dynamic resources: %w", err)
		}
	}
	if !changed && len(gone) == 0 {
		return nil
	}
	c.known.Lock()
	for _, p := range gone {
		delete(c.byKey, p.Namespace+"/"+p.Name)
	}
	c.known.Unlock()
	return c.save()
}

func (c *Claims) giveBack(ctx context.Context, name string, list []*prepared) error {
	client, err := c.get(name)
	if err != nil {
		return err
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := client.NodeUnprepareResources(call, &drapb.NodeUnprepareResourcesRequest{Claims: request(list)})
	if err != nil {
		return fmt.Errorf("NodeUnprepareResources: %w", err)
	}
	for _, p := range list {
		result, ok := resp.Claims[string(p.UID)]
		switch {
		case !ok:
			return fmt.Errorf("NodeUnprepareResources skipped 1 ResourceClaims")
		case result.GetError() != "":
			return fmt.Errorf("NodeUnprepareResources failed for ResourceClaim %s: %s", p.Name, result.GetError())
		}
	}
	return nil
}

// Users are the pods that have claims prepared.
func (c *Claims) Users() []types.UID {
	c.known.Lock()
	defer c.known.Unlock()
	var out []types.UID
	for _, p := range c.byKey {
		for _, uid := range p.Pods {
			if !slices.Contains(out, uid) {
				out = append(out, uid)
			}
		}
	}
	return out
}

func (c *Claims) load() error {
	b, err := os.ReadFile(filepath.Join(c.cfg.Dir, stateName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, &c.byKey)
}

// save writes the file anew: it is whole or not there.
func (c *Claims) save() error {
	c.known.Lock()
	b, err := json.Marshal(c.byKey)
	c.known.Unlock()
	if err != nil {
		return err
	}
	path := filepath.Join(c.cfg.Dir, stateName)
	if err := os.MkdirAll(c.cfg.Dir, 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
