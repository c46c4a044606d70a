package apiserver_test

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/periplus/periplus/apiserver"
	"github.com/periplus/periplus/apiserver/admission/all"
	"github.com/periplus/periplus/apiserver/rest"
)

// withoutAccounts starts a server whose pods need no service account.
func withoutAccounts(t *testing.T, more func(*apiserver.Config)) kubernetes.Interface {
	t.Helper()
	_, c := startWith(t, func(config *apiserver.Config) {
		config.DisableAdmission = []string{"ServiceAccount"}
		if more != nil {
			more(config)
		}
	})
	return c
}

func onePod(name string, change func(*corev1.PodSpec)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

// TestPodSecurity: labels of the namespace decide which pods there may be.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := withoutAccounts(t, func(config *apiserver.Config) {
		config.Admission.Configurations = map[string][]byte{"PodSecurity": []byte(`
apiVersion: pod-security.admission.config.k8s.io/v1
kind: PodSecurityConfiguration
exemptions: {namespaces: [exempt]}
`)}
	})
	for name, labels := range map[string]map[string]string{
		"strict": {"pod-security.kubernetes.io/enforce": "baseline"},
		"exempt": {"pod-security.kubernetes.io/enforce": "restricted"},
		"free":   nil,
	} {
		if _, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	host := func(s *corev1.PodSpec) { s.HostNetwork = true }
	for name, change := range map[string]func(*corev1.PodSpec){"plain": nil, "host": host} {
		for ns, refused := range map[string]bool{"strict": change != nil, "exempt": false, "free": false} {
			_, err := c.CoreV1().Pods(ns).Create(ctx, onePod(name, change), metav1.CreateOptions{})
			switch {
			case refused && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `pods "host" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`)):
				t.Errorf("pod %s in %s: %v", name, ns, err)
			case !refused && err != nil:
				t.Errorf("pod %s in %s: %v", name, ns, err)
			}
		}
	}
	_, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "wrong", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "loose"}}}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("a level that there is not: %v", err)
	}
	// A template is not refused: its pods will be.
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		Template: corev1.PodTemplateSpec{ObjectMeta: onePod("", nil).ObjectMeta, Spec: onePod("", host).Spec},
	}}
	if _, err := c.AppsV1().Deployments("strict").Create(ctx, d, metav1.CreateOptions{}); err != nil {
		t.Errorf("a deployment: %v", err)
	}
}

// TestRuntimeClassAdmission: a pod gets what its class says.
func TestRuntimeClassAdmission(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := withoutAccounts(t, nil)
	if _, err := c.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "sandboxed"}, Handler: "vm",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"vm": "yes"}, Tolerations: []corev1.Toleration{
			{Key: "vm", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	of := func(class string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.RuntimeClassName = &class }
	}
	p, err := c.CoreV1().Pods("default").Create(ctx, onePod("in", of("sandboxed")), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if m := p.Spec.Overhead[corev1.ResourceMemory]; m.String() != "64Mi" || p.Spec.NodeSelector["vm"] != "yes" || !tolerated(p, "vm") {
		t.Errorf("overhead %v, selector %v, tolerations %v", p.Spec.Overhead, p.Spec.NodeSelector, p.Spec.Tolerations)
	}
	for name, change := range map[string]func(*corev1.PodSpec){
		`RuntimeClass "nowhere" not found`: of("nowhere"),
		"Pod Overhead set without corresponding RuntimeClass": func(s *corev1.PodSpec) {
			s.Overhead = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
		},
		"conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no": func(s *corev1.PodSpec) {
			of("sandboxed")(s)
			s.NodeSelector = map[string]string{"vm": "no"}
		},
	} {
		if _, err := c.CoreV1().Pods("default").Create(ctx, onePod("p", change), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v\nwant %s", err, name)
		}
	}
}

func tolerated(p *corev1.Pod, key string) bool {
	for _, t := range p.Spec.Tolerations {
		if t.Key == key {
			return true
		}
	}
	return false
}

// TestMutatingAdmissionPolicy: both sorts of patches, conditions, parameters, a second round.
func TestMutatingAdmissionPolicy(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := withoutAccounts(t, nil)
	api := c.AdmissionregistrationV1()
	ignore := admissionregistrationv1.Ignore
	make := func(name, resource string, spec admissionregistrationv1.MutatingAdmissionPolicySpec, ref *admissionregistrationv1.ParamRef) {
		t.Helper()
		group, version := "", "v1"
		spec.MatchConstraints = &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
			{RuleWithOperations: ruleFor(group, version, resource, admissionregistrationv1.Create)[0]}}}
		if spec.ReinvocationPolicy == "" {
			spec.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy
		}
		if _, err := api.MutatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := api.MutatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name, ParamRef: ref},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	apply := func(text string) admissionregistrationv1.Mutation {
		return admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: text}}
	}
	patch := func(text string) admissionregistrationv1.Mutation {
		return admissionregistrationv1.Mutation{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: text}}
	}
	if _, err := c.CoreV1().ConfigMaps("kube-public").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "images"}, Data: map[string]string{"sidecar": "mesh:1"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	make("sidecar", "pods", admissionregistrationv1.MutatingAdmissionPolicySpec{
		ParamKind:       &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "ConfigMap"},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "once", Expression: "!object.spec.containers.exists(c, c.name == 'sidecar')"}},
		Variables:       []admissionregistrationv1.Variable{{Name: "image", Expression: "params.data.sidecar"}},
		Mutations:       []admissionregistrationv1.Mutation{apply("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'sidecar', image: variables.image}]}}")},
	}, &admissionregistrationv1.ParamRef{Name: "images", Namespace: "kube-public", ParameterNotFoundAction: ptr(admissionregistrationv1.DenyAction)})
	make("a-count", "pods", admissionregistrationv1.MutatingAdmissionPolicySpec{
		ReinvocationPolicy: admissionregistrationv1.IfNeededReinvocationPolicy,
		Mutations:          []admissionregistrationv1.Mutation{patch(`[JSONPatch{op: "add", path: "/metadata/labels/containers", value: string(size(object.spec.containers))}]`)},
	}, nil)
	p, err := c.CoreV1().Pods("default").Create(ctx, onePod("p", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Spec.Containers) != 2 || p.Spec.Containers[1].Image != "mesh:1" || p.Spec.Containers[1].TerminationMessagePath == "" {
		t.Errorf("containers %+v", p.Spec.Containers)
	}
	if got := p.Labels["containers"]; got != "2" {
		t.Errorf("the policy that ran before the sidecar came counts %q containers", got)
	}
	// Failures.
	make("broken", "configmaps", admissionregistrationv1.MutatingAdmissionPolicySpec{
		Mutations: []admissionregistrationv1.Mutation{patch(`[JSONPatch{op: "replace", path: "/data/none", value: "x"}]`)},
	}, nil)
	_, err = c.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), "policy 'broken' with binding 'broken' denied request") {
		t.Errorf("a patch that does not apply: %v", err)
	}
	make("careless", "secrets", admissionregistrationv1.MutatingAdmissionPolicySpec{
		FailurePolicy: &ignore, Mutations: []admissionregistrationv1.Mutation{patch(`[JSONPatch{op: "replace", path: "/data/none", value: "x"}]`)},
	}, nil)
	if _, err := c.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, metav1.CreateOptions{}); err != nil {
		t.Errorf("one whose failures are ignored: %v", err)
	}
}

// TestAdmissionOptions: names of plug-ins are checked.
func TestAdmissionOptions(t *testing.T) {
	t.Parallel()
	for _, o := range []all.Options{{Enable: []string{"Nope"}}, {Disable: []string{"Nope"}}, {Enable: []string{"PodSecurity"}, Disable: []string{"PodSecurity"}},
		{Configurations: map[string][]byte{"PodSecurity": []byte("kind: Wrong")}}} {
		if _, err := all.Chain(&rest.Server{}, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
