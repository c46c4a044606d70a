package all_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/validation"
)

// changed runs the steps of an update from before to after.
func changed(t *testing.T, r *registry.Resource, s registry.Strategy, before, after string) []string {
	t.Helper()
	ctx := context.Background()
	old, obj := object(t, r, before), object(t, r, before, after)
	if errs := made(r, old); len(errs) > 0 {
		t.Fatal(errs)
	}
	s.Default(obj)
	s.PrepareForUpdate(ctx, obj, old)
	errs := validation.ObjectMetaUpdate(metaOf(obj), metaOf(old), r.Namespaced)
	return lines(append(errs, s.ValidateUpdate(ctx, obj, old)...))
}

func TestRulesOnUpdate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, before, after string
		want                []string
	}{
		{"StorageClass", "{}", `{parameters: {a: c}, provisioner: e.example.com}`, []string{
			"Invalid parameters: Invalid value: null: field is immutable",
			"Invalid provisioner: Invalid value: null: field is immutable"}},
		{"VolumeAttributesClass", "{}", `{parameters: {a: c}}`, []string{"Forbidden parameters: Forbidden: updates to parameters are forbidden."}},
		{"VolumeAttachment", "{}", `{spec: {nodeName: other}}`, []string{"Invalid spec: Invalid value: null: field is immutable"}},
		{"PersistentVolumeClaim", "{}", `{spec: {volumeName: v}}`, nil},
		{"PersistentVolume", `{spec: {volumeAttributesClassName: gold}}`, `{spec: {volumeAttributesClassName: null}}`, []string{
			"Forbidden spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden"}},
		{"PersistentVolume", "{}", `{spec: {csi: {controllerExpandSecretRef: {name: a, namespace: b}}}}`, nil},
		{"ResourceQuota", `{spec: {scopes: [BestEffort]}}`, `{spec: {scopes: [NotBestEffort]}}`, []string{
			`Invalid spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable`}},
		{"ServiceCIDR", "{}", `{spec: {cidrs: [10.0.0.0/16, "fd00::/64"]}}`, nil},
		{"ServiceCIDR", "{}", `{spec: {cidrs: [10.1.0.0/16]}}`, []string{`Invalid spec.cidrs[0]: Invalid value: "10.1.0.0/16": field is immutable`}},
		{"RuntimeClass", "{}", `{handler: other}`, []string{"Invalid handler: Invalid value: null: field is immutable"}},
		{"CSIStorageCapacity", "{}", `{storageClassName: other}`, []string{`Invalid storageClassName: Invalid value: "other": field is immutable`}},
		{"StatefulSet", "{}", `{spec: {podManagementPolicy: Parallel}}`, []string{`Invalid spec.podManagementPolicy: Invalid value: "Parallel": field is immutable`}},
		{"ResourceClaim", "{}", `{spec: {devices: {requests: [{name: s, exactly: {deviceClassName: c}}]}}}`, []string{"Invalid spec: Invalid value: null: field is immutable"}},
		{"Node", "{}", `{spec: {podCIDRs: [10.1.0.0/24], podCIDR: 10.1.0.0/24}}`, []string{
			`Forbidden spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`}},
		{"ClusterRole", "{}", `{metadata: {labels: {"not a key": x}}}`, []string{
			`Invalid metadata.labels: Invalid value: "not a key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			r := find(t, serviceEnv, c.kind)
			want(t, changed(t, r, r.Strategy, c.before, c.after), c.want...)
		})
	}
}

// TestKept covers what the endpoints of a kind keep, drop and count.
func TestKept(t *testing.T) {
	t.Parallel()
	r := find(t, serviceEnv, "PersistentVolumeClaim")
	claim := object(t, r, `{spec: {dataSource: {kind: Secret, name: x}}}`)
	if errs := made(r, claim); len(errs) > 0 {
		t.Fatal(errs)
	}
	want(t, changed(t, r, r.Status, "{}", `{status: {allocatedResources: {cpu: 1}, allocatedResourceStatuses: {storage: Odd}}}`),
		`NotSupported status.allocatedResources: Unsupported value: "cpu": supported values: "storage"`,
		`NotSupported status.allocatedResourceStatuses: Unsupported value: "storage": supported values: "ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"`)

	r = find(t, serviceEnv, "NetworkPolicy")
	if got := metaOf(object(t, r)).Generation; got != 0 {
		t.Errorf("generation %d", got)
	}
	policy := object(t, r)
	made(r, policy)
	if got := metaOf(policy).Generation; got != 1 {
		t.Errorf("a new policy has generation %d", got)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, patch string
		want        []string
	}{
		{"Pod", `{metadata: {name: a.b}}`, []string{"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"}},
		{"Pod", `{spec: {nodeSelector: {beta.kubernetes.io/os: linux}}}`, []string{
			`spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`}},
		{"Pod", `{spec: {containers: [{name: c, image: x, env: [{name: A, value: x}, {name: A, value: w}, {name: B, value: x}, {name: B, value: "$(B)w"}], resources: {limits: {memory: 100m}}, ports: [{containerPort: 80, name: p}, {containerPort: 80, name: q}]}]}}`, []string{
			`spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`,
			`spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer`,
			`spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer`,
			"spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"}},
		{"Pod", `{spec: {volumes: [{name: v, configMap: {name: m, items: [{key: a, path: x}, {key: b, path: x/y}]}}, {name: g, glusterfs: {endpoints: e, path: p}}]}}`, []string{
			`volume "v" (ConfigMap "m"): overlapping paths: "x/y" with "x"`,
			"spec.volumes[1].glusterfs: deprecated in v1.25, non-functional in v1.26+"}},
		{"StatefulSet", `{spec: {revisionHistoryLimit: -1, volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 500m}}}}]}}`, []string{
			`spec.volumeClaimTemplates[0].resources.requests[storage]: fractional byte value "500m" is invalid, must be an integer`,
			"spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"}},
		{"Ingress", `{metadata: {annotations: {kubernetes.io/ingress.class: x}}}`, []string{`annotation "kubernetes.io/ingress.class" is deprecated, please use 'spec.ingressClassName' instead`}},
		{"PersistentVolume", `{spec: {persistentVolumeReclaimPolicy: Recycle}}`, []string{
			"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."}},
		{"ResourceQuota", `{spec: {hard: {requests.cpu: 2, limits.cpu: 1}}}`, []string{"ResourceQuota requests.cpu (2) should be less than limits.cpu (1)"}},
		{"NetworkPolicy", `{spec: {ingress: [{from: [{ipBlock: {cidr: "fd00:0::/64"}}]}]}}`, []string{
			`spec.ingress[0].from[0].ipBlock.cidr: IPv6 CIDR value "fd00:0::/64" should be in RFC 5952 canonical format ("fd00::/64")`}},
		{"Secret", `{type: kubernetes.io/tls, data: {tls.crt: YWJj, tls.key: YWJj}}`, []string{"tls: failed to find any PEM data in certificate input"}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			r := find(t, serviceEnv, c.kind)
			obj := object(t, r, c.patch)
			if errs := made(r, obj); len(errs) > 0 {
				t.Fatal(errs)
			}
			got := r.Strategy.Warnings(context.Background(), obj, nil)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}
