package all_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/validation"
)

// bases are valid objects; the cases below change them by merge patches.
var bases = map[string]string{
	"LimitRange":                       `{metadata: {name: a}, spec: {limits: [{type: Container, max: {cpu: 2}, min: {cpu: 100m}}]}}`,
	"ResourceQuota":                    `{metadata: {name: a}, spec: {hard: {pods: 10}}}`,
	"PersistentVolumeClaim":            `{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
	"PersistentVolume":                 `{metadata: {name: a}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: d.example.com, volumeHandle: h}}}`,
	"StorageClass":                     `{metadata: {name: a}, provisioner: d.example.com, parameters: {a: b}}`,
	"CSIDriver":                        `{metadata: {name: d.example.com}, spec: {}}`,
	"CSIStorageCapacity":               `{metadata: {name: a}, storageClassName: s, capacity: 1Gi}`,
	"VolumeAttributesClass":            `{metadata: {name: a}, driverName: d.example.com, parameters: {a: b}}`,
	"VolumeAttachment":                 `{metadata: {name: a}, spec: {attacher: d.example.com, nodeName: m, source: {persistentVolumeName: p}}}`,
	"NetworkPolicy":                    `{metadata: {name: a}, spec: {podSelector: {}, ingress: [{from: [{podSelector: {}}], ports: [{port: 80}]}]}}`,
	"Ingress":                          `{metadata: {name: a}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`,
	"IngressClass":                     `{metadata: {name: a}, spec: {controller: a.b/c, parameters: {kind: K, name: m}}}`,
	"IPAddress":                        `{metadata: {name: 10.0.0.1}, spec: {parentRef: {resource: services, name: a, namespace: x}}}`,
	"ServiceCIDR":                      `{metadata: {name: a}, spec: {cidrs: [10.0.0.0/16]}}`,
	"PodDisruptionBudget":              `{metadata: {name: a}, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}`,
	"PriorityClass":                    `{metadata: {name: a}, value: 5}`,
	"RuntimeClass":                     `{metadata: {name: a}, handler: runc}`,
	"StatefulSet":                      `{metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}, volumeClaimTemplates: [{metadata: {name: v}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`,
	"DaemonSet":                        `{metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}}}`,
	"CronJob":                          `{metadata: {name: a}, spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}}}`,
	"Node":                             `{metadata: {name: a}, spec: {podCIDRs: [10.0.0.0/24]}}`,
	"ClusterRole":                      `{metadata: {name: a}, rules: [{verbs: [get], apiGroups: [""], resources: [pods]}]}`,
	"FlowSchema":                       `{metadata: {name: a}, spec: {priorityLevelConfiguration: {name: p}, rules: [{subjects: [{kind: User, user: {name: u}}], nonResourceRules: [{verbs: [get], nonResourceURLs: [/x]}]}]}}`,
	"PriorityLevelConfiguration":       `{metadata: {name: a}, spec: {type: Limited, limited: {limitResponse: {type: Queue, queuing: {}}}}}`,
	"StorageVersionMigration":          `{metadata: {name: a}, spec: {resource: {group: apps, resource: deployments}}}`,
	"ValidatingAdmissionPolicy":        `{metadata: {name: a}, spec: {matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]}, validations: [{expression: "true"}]}}`,
	"MutatingAdmissionPolicy":          `{metadata: {name: a}, spec: {reinvocationPolicy: Never, matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [deployments]}]}, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{}"}}]}}`,
	"ValidatingAdmissionPolicyBinding": `{metadata: {name: a}, spec: {policyName: p, validationActions: [Deny]}}`,
	"ResourceClaim":                    `{metadata: {name: a}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}}`,
	"ResourceSlice":                    `{metadata: {name: a}, spec: {driver: d.example.com, pool: {name: p, resourceSliceCount: 1}, nodeName: m, devices: [{name: d}]}}`,
	"DeviceClass":                      `{metadata: {name: a}, spec: {}}`,
	"DeviceTaintRule":                  `{metadata: {name: a}, spec: {taint: {key: a, effect: NoExecute}}}`,
	"Pod":                              `{metadata: {name: a}, spec: {containers: [{name: c, image: x}]}}`,
	"Secret":                           `{metadata: {name: a}, data: {a: YWJj}}`,
}

// object returns a base with patches applied.
func object(t *testing.T, r *registry.Resource, patches ...string) runtime.Object {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(bases[r.Kind]))
	for _, patch := range patches {
		var p []byte
		if p, err = yaml.YAMLToJSON([]byte(patch)); err == nil {
			raw, err = jsonpatch.MergePatch(raw, p)
		}
		if err != nil {
			t.Fatalf("%s: %v", patch, err)
		}
	}
	obj := r.New()
	if err == nil {
		err = json.Unmarshal(raw, obj)
	}
	if err != nil {
		t.Fatalf("%s: %v", r.Kind, err)
	}
	meta := obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
	meta.UID, meta.ResourceVersion = "uid", "1"
	if r.Namespaced {
		meta.Namespace = "default"
	}
	return obj
}

func metaOf(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}

// made runs the steps of a creation.
func made(r *registry.Resource, obj runtime.Object) field.ErrorList {
	ctx := context.Background()
	r.Strategy.Default(obj)
	r.Strategy.PrepareForCreate(ctx, obj)
	return append(validation.ObjectMeta(metaOf(obj), r.Namespaced, r.Strategy.ValidateName), r.Strategy.Validate(ctx, obj)...)
}

// lines are errors as "Type field: detail", in order.
func lines(errs field.ErrorList) (out []string) {
	for _, e := range validation.UpstreamValues(errs) {
		out = append(out, string(e.Type)+" "+e.Error())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func want(t *testing.T, got []string, wanted ...string) {
	t.Helper()
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "FieldValue")
	}
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(wanted, "\n\t"))
	}
}

func TestBasesAreValid(t *testing.T) {
	t.Parallel()
	for kind := range bases {
		r := find(t, serviceEnv, kind)
		if errs := made(r, object(t, r)); len(errs) > 0 {
			t.Errorf("%s: %v", kind, errs)
		}
	}
}

func TestRulesOnCreate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, patch string
		want        []string
	}{
		{"LimitRange", `{spec: {limits: [{type: Pod, default: {cpu: 1}}, {type: Pod}]}}`, []string{
			"Forbidden spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'",
			`Duplicate spec.limits[1].type: Duplicate value: "Pod"`}},
		{"LimitRange", `{spec: {limits: [{type: Container, max: {cpu: 1}, min: {cpu: 2}}]}}`, []string{
			`Invalid spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1`,
			`Invalid spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1`,
			`Invalid spec.limits[0].defaultRequest[cpu]: Invalid value: "1": min value 2 is greater than default request value 1`}},
		{"ResourceQuota", `{spec: {hard: {requests.memory: 1Gi}, scopes: [BestEffort, NotBestEffort]}}`, []string{
			`Invalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes`,
			`Invalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: unsupported scope applied to resource`}},
		{"ResourceQuota", `{spec: {hard: {storage: 1Gi}}}`, []string{
			`Invalid spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota`}},
		{"PersistentVolumeClaim", `{spec: {accessModes: [ReadWriteOncePod, ReadWriteMany], resources: {requests: {storage: "0"}}}}`, []string{
			"Forbidden spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
			`Invalid spec.resources[storage]: Invalid value: "0": must be greater than zero`}},
		{"PersistentVolume", `{spec: {csi: {volumeHandle: "", nodeStageSecretRef: {name: A}}, volumeAttributesClassName: ""}}`, []string{
			"Required spec.csi.volumeHandle: Required value",
			"Required spec.volumeAttributesClassName: Required value: an empty string is disallowed"}},
		{"StorageClass", `{reclaimPolicy: Recycle, allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a, a]}]}]}`, []string{
			`NotSupported reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"`,
			`Duplicate allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "a"`}},
		{"CSIDriver", `{spec: {serviceAccountTokenInSecrets: true, fsGroupPolicy: Some}}`, []string{
			"Invalid spec.serviceAccountTokenInSecrets: Invalid value: true: serviceAccountTokenInSecrets is set but no tokenRequests are specified",
			`NotSupported spec.fsGroupPolicy: Unsupported value: "Some": supported values: "File", "None", "ReadWriteOnceWithFSType"`}},
		{"VolumeAttributesClass", `{parameters: null}`, []string{"Required parameters: Required value: must contain at least one key/value pair"}},
		{"NetworkPolicy", `{spec: {ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}, podSelector: {}}, {}], ports: [{port: http, endPort: 90}]}]}}`, []string{
			"Forbidden spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer",
			"Invalid spec.ingress[0].from[0].ipBlock.except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`",
			"Required spec.ingress[0].from[1]: Required value: must specify a peer",
			"Invalid spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is non-numeric"}},
		{"Ingress", `{spec: {defaultBackend: {service: null, resource: {kind: "", name: x}}}}`, []string{"Required spec.defaultBackend.resource.kind: Required value"}},
		{"IngressClass", `{spec: {controller: nope, parameters: {scope: Namespace}}}`, []string{
			`Invalid spec.controller: Invalid value: "nope": must be a domain-prefixed path (such as "acme.io/foo")`,
			"Required spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"}},
		{"IPAddress", `{metadata: {name: 010.0.0.1}}`, []string{`Invalid metadata.name: Invalid value: "010.0.0.1": must not have leading 0s`}},
		{"ServiceCIDR", `{spec: {cidrs: [10.0.0.0/16, 10.1.0.0/16]}}`, []string{
			`Invalid spec.cidrs: Invalid value: ["10.0.0.0/16","10.1.0.0/16"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64`}},
		{"PodDisruptionBudget", `{spec: {minAvailable: 150%, unhealthyPodEvictionPolicy: Never}}`, []string{
			`Invalid spec.minAvailable: Invalid value: "150%": must not be greater than 100%`,
			`NotSupported spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": supported values: "AlwaysAllow", "IfHealthyBudget"`}},
		{"PriorityClass", `{metadata: {name: system-mine}}`, []string{
			"Forbidden metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class"}},
		{"RuntimeClass", `{handler: null, scheduling: {tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists}]}}`, []string{
			"Required handler: Required value",
			`Duplicate scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}`}},
		{"StatefulSet", `{spec: {updateStrategy: {type: Sometimes}, podManagementPolicy: Any, serviceName: A}}`, []string{
			`Invalid spec.updateStrategy: Invalid value: {"Type":"Sometimes","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'`,
			`Invalid spec.podManagementPolicy: Invalid value: "Any": must be 'OrderedReady' or 'Parallel'`,
			`Invalid spec.serviceName: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`}},
		{"DaemonSet", `{spec: {template: {metadata: {labels: {a: x}}, spec: {restartPolicy: Never}}}}`, []string{
			"Invalid spec.template.metadata.labels: Invalid value: {\"a\":\"x\"}: `selector` does not match template `labels`",
			`NotSupported spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"`}},
		{"CronJob", `{spec: {timeZone: Nowhere/City, schedule: "TZ=UTC * * * * *"}}`, []string{
			`Invalid spec.timeZone: Invalid value: "Nowhere/City": unknown time zone Nowhere/City`,
			`Invalid spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead`}},
		{"Node", `{metadata: {finalizers: [mine]}}`, []string{
			`Invalid metadata.finalizers[0]: Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified`}},
		{"FlowSchema", `{spec: {matchingPrecedence: 1, rules: [{subjects: [{kind: User, group: {name: g}}]}]}}`, []string{
			"Invalid spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
			"Required spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'",
			"Forbidden spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
			"Required spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty"}},
		{"PriorityLevelConfiguration", `{spec: {limited: {limitResponse: {queuing: {queues: 2, handSize: 3}}}}}`, []string{
			"Invalid spec.limited.limitResponse.queuing.handSize: Invalid value: 3: should not be greater than queues (2)"}},
		{"StorageVersionMigration", `{spec: {resource: {resource: ""}}}`, []string{"Required spec.resource.resource: Required value: resource is required to be set"}},
		{"ValidatingAdmissionPolicy", `{spec: {validations: null, auditAnnotations: [{key: a b, valueExpression: "1"}]}}`, []string{
			`Invalid spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int`,
			`Invalid spec.auditAnnotations[0].key: Invalid value: "a/a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`}},
		{"MutatingAdmissionPolicy", `{spec: {mutations: [{patchType: JSONPatch}]}}`, []string{
			"Required spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch"}},
		{"ValidatingAdmissionPolicyBinding", `{spec: {paramRef: {}, validationActions: [Deny, Warn]}}`, []string{
			"Required spec.paramRef: Required value: one of name or selector must be specified",
			"Required spec.paramRef.parameterNotFoundAction: Required value",
			`Invalid spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)`}},
		{"ResourceClaim", `{spec: {devices: {requests: [{name: r, exactly: {allocationMode: All, count: 2}}], constraints: [{requests: [other], matchAttribute: a.b/c}]}}}`, []string{
			"Required spec.devices.requests[0].exactly.deviceClassName: Required value",
			"Invalid spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
			`Invalid spec.devices.constraints[0].requests[0]: Invalid value: "other": must be the name of a request in the claim or the name of a request and a subrequest separated by '/'`}},
		{"ResourceSlice", `{spec: {allNodes: true}}`, []string{
			"Invalid spec: Invalid value: \"{`nodeName`, `allNodes`}\": exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set"}},
		{"DeviceClass", `{spec: {config: [{}], extendedResourceName: cpu}}`, []string{
			"Required spec.config[0].opaque: Required value",
			`Invalid spec.extendedResourceName: Invalid value: "cpu": a name must be a domain-prefixed path, such as 'example.com/my-prop'`}},
		{"DeviceTaintRule", `{spec: {taint: {effect: Never}}}`, []string{
			`NotSupported spec.taint.effect: Unsupported value: "Never": supported values: "NoExecute", "NoSchedule", "None"`}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			r := find(t, serviceEnv, c.kind)
			want(t, lines(made(r, object(t, r, c.patch))), c.want...)
		})
	}
}
