package rbac_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/authz/rbac"
)

// The cluster roles of Kubernetes v1.37, without those of controllers.
const documentedRoles = `admin cluster-admin edit view
system:aggregate-to-admin system:aggregate-to-edit system:aggregate-to-view
system:auth-delegator system:basic-user
system:certificates.k8s.io:certificatesigningrequests:nodeclient system:certificates.k8s.io:certificatesigningrequests:selfnodeclient
system:certificates.k8s.io:kube-apiserver-client-approver system:certificates.k8s.io:kube-apiserver-client-kubelet-approver
system:certificates.k8s.io:kubelet-serving-approver system:certificates.k8s.io:legacy-unknown-approver
system:cluster-trust-bundle-discovery system:discovery system:heapster system:kube-aggregator
system:kube-controller-manager system:kube-dns system:kube-scheduler system:kubelet-api-admin system:monitoring
system:node system:node-bootstrapper system:node-problem-detector system:node-proxier
system:persistent-volume-provisioner system:public-info-viewer system:service-account-issuer-discovery system:volume-scheduler`

const documentedControllers = `attachdetach-controller certificate-controller clusterrole-aggregation-controller cronjob-controller
daemon-set-controller deployment-controller device-taint-eviction-controller disruption-controller endpoint-controller
endpointslice-controller endpointslicemirroring-controller ephemeral-volume-controller expand-controller generic-garbage-collector
horizontal-pod-autoscaler job-controller kube-apiserver-serving-clustertrustbundle-publisher legacy-service-account-token-cleaner
namespace-controller node-controller persistent-volume-binder pod-garbage-collector podcertificaterequestcleaner
pv-protection-controller pvc-protection-controller replicaset-controller replication-controller resource-claim-controller
resourcequota-controller root-ca-cert-publisher route-controller selinux-warning-controller service-account-controller
service-cidrs-controller service-controller statefulset-controller storage-version-migrator-controller ttl-after-finished-controller
ttl-controller validatingadmissionpolicy-status-controller volumeattributesclass-protection-controller`

const documentedBindings = `cluster-admin system:basic-user system:cluster-trust-bundle-discovery system:discovery
system:kube-controller-manager system:kube-dns system:kube-scheduler system:monitoring system:node system:node-proxier
system:public-info-viewer system:service-account-issuer-discovery system:volume-scheduler`

func bootstrap(t testing.TB, c kubernetes.Interface) {
	t.Helper()
	if err := rbac.BootstrapCluster(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := rbac.BootstrapNamespaces(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func names[T any, P interface {
	*T
	metav1.Object
}](list []T) []string {
	var out []string
	for i := range list {
		out = append(out, P(&list[i]).GetName())
	}
	slices.Sort(out)
	return out
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := fake.NewClientset()
	bootstrap(t, c)
	var controllers []string
	for _, name := range strings.Fields(documentedControllers) {
		controllers = append(controllers, "system:controller:"+name)
	}
	own := []string{"system:periplus:join", "system:periplus:journey", "system:periplus:node-network", "system:periplus:server-join"}
	joining := []string{"system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"}
	compare := func(what string, got []string, want ...[]string) {
		all := slices.Sorted(slices.Values(slices.Concat(want...)))
		if !slices.Equal(got, all) {
			t.Errorf("%s:\n got %v\nwant %v", what, got, all)
		}
	}
	roles, err := c.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compare("cluster roles", names(roles.Items), strings.Fields(documentedRoles), controllers, own, []string{"system:aggregated-metrics-reader"})
	bindings, err := c.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compare("cluster role bindings", names(bindings.Items), strings.Fields(documentedBindings), controllers, own, joining)
	for _, b := range bindings.Items {
		account, ok := strings.CutPrefix(b.Name, "system:controller:")
		if want := (rbacv1.Subject{Kind: "ServiceAccount", Namespace: "kube-system", Name: account}); ok && !slices.Equal(b.Subjects, []rbacv1.Subject{want}) {
			t.Errorf("%s is bound to %v, want %v", b.Name, b.Subjects, want)
		}
		if !slices.Contains(names(roles.Items), b.RoleRef.Name) {
			t.Errorf("%s refers to %s, which does not exist", b.Name, b.RoleRef.Name)
		}
	}
	inside, err := c.RbacV1().Roles("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compare("roles", names(inside.Items), []string{"extension-apiserver-authentication-reader", "system::leader-locking-kube-controller-manager",
		"system::leader-locking-kube-scheduler", "system:controller:bootstrap-signer", "system:controller:bootstrap-signer",
		"system:controller:cloud-provider", "system:controller:token-cleaner", "system:periplus:cluster-config", "system:periplus:cluster-info"})
	for _, r := range roles.Items {
		if r.Labels["kubernetes.io/bootstrapping"] != "rbac-defaults" || r.Annotations[rbacv1.AutoUpdateAnnotationKey] != "true" {
			t.Errorf("%s is not marked as a default: %v %v", r.Name, r.Labels, r.Annotations)
		}
		for _, rule := range r.Rules {
			if len(rule.Verbs) == 0 || len(rule.Resources)+len(rule.NonResourceURLs) == 0 {
				t.Errorf("%s has an empty rule %v", r.Name, rule)
			}
		}
	}
}

func TestAggregation(t *testing.T) {
	t.Parallel()
	c := fake.NewClientset()
	bootstrap(t, c)
	const prefix = "rbac.authorization.k8s.io/aggregate-to-"
	for _, tt := range []struct{ role, collects, into string }{
		{"admin", "admin", ""}, {"edit", "edit", "admin"}, {"view", "view", "edit"},
		{"system:aggregate-to-admin", "", "admin"}, {"system:aggregate-to-edit", "", "edit"}, {"system:aggregate-to-view", "", "view"},
	} {
		r, err := c.RbacV1().ClusterRoles().Get(t.Context(), tt.role, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if tt.into != "" && r.Labels[prefix+tt.into] != "true" {
			t.Errorf("%s has labels %v, want %s", tt.role, r.Labels, prefix+tt.into)
		}
		if (r.AggregationRule != nil) != (tt.collects != "") {
			t.Errorf("%s collects %v", tt.role, r.AggregationRule)
		}
		if r.AggregationRule != nil && (len(r.Rules) != 0 || r.AggregationRule.ClusterRoleSelectors[0].MatchLabels[prefix+tt.collects] != "true") {
			t.Errorf("%s collects %v and has rules %v", tt.role, r.AggregationRule, r.Rules)
		}
	}
}

func TestExistingRolesAreCompleted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c := fake.NewClientset()
	bootstrap(t, c)
	roles, bindings := c.RbacV1().ClusterRoles(), c.RbacV1().ClusterRoleBindings()
	edit := func(name string, change func(*rbacv1.ClusterRole)) {
		r, err := roles.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		change(r)
		if _, err := roles.Update(ctx, r, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	wide := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"services", "endpoints", "pods"}}
	edit("system:kube-dns", func(r *rbacv1.ClusterRole) { r.Rules = []rbacv1.PolicyRule{wide} })
	edit("system:node-proxier", func(r *rbacv1.ClusterRole) { r.Rules, r.Labels = []rbacv1.PolicyRule{wide}, nil })
	edit("system:heapster", func(r *rbacv1.ClusterRole) {
		r.Rules = nil
		r.Annotations[rbacv1.AutoUpdateAnnotationKey] = "false"
	})
	edit("view", func(r *rbacv1.ClusterRole) { r.Rules = []rbacv1.PolicyRule{wide} }) // by the aggregation controller
	monitoring, err := bindings.Get(ctx, "system:monitoring", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	monitoring.Subjects = []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "alice"}}
	if _, err := bindings.Update(ctx, monitoring, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.ClearActions()
	bootstrap(t, c)
	for name, rules := range map[string]int{"system:kube-dns": 1, "system:node-proxier": 5, "system:heapster": 0, "view": 1} {
		r, err := roles.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Rules) != rules {
			t.Errorf("%s has %d rules, want %d: %v", name, len(r.Rules), rules, r.Rules)
		}
	}
	monitoring, err = bindings.Get(ctx, "system:monitoring", metav1.GetOptions{})
	if err != nil || len(monitoring.Subjects) != 2 {
		t.Errorf("system:monitoring is bound to %v, %v; want alice and the default group", monitoring.Subjects, err)
	}
	writes := 0
	for _, a := range c.Actions() {
		if a.GetVerb() != "get" {
			writes++
		}
	}
	if writes != 2 {
		t.Errorf("%d writes to complete two objects", writes)
	}
}

func TestNodeAllows(t *testing.T) {
	t.Parallel()
	u := &user.DefaultInfo{Name: "system:node:a", Groups: []string{user.NodesGroup}}
	for _, tt := range []struct {
		verb, group, resource, sub string
		want                       bool
	}{
		{"create", "", "nodes", "", true},
		{"patch", "", "nodes", "status", true},
		{"delete", "", "nodes", "", false},
		{"watch", "", "pods", "", true},
		{"patch", "", "pods", "status", true},
		{"update", "", "pods", "", false},
		{"create", "events.k8s.io", "events", "", true},
		{"create", "certificates.k8s.io", "certificatesigningrequests", "", true},
		{"update", "certificates.k8s.io", "certificatesigningrequests", "approval", false},
		{"create", "", "serviceaccounts", "token", true},
		{"list", "certificates.k8s.io", "clustertrustbundles", "", true},
		{"deletecollection", "resource.k8s.io", "resourceslices", "", true},
		{"get", "rbac.authorization.k8s.io", "roles", "", false},
	} {
		q := &authz.Question{User: u, IsResource: true, Verb: tt.verb, Group: tt.group, Resource: tt.resource, Subresource: tt.sub}
		if got := rbac.NodeAllows(q); got != tt.want {
			t.Errorf("%s %s/%s %s: %v, want %v", tt.verb, tt.resource, tt.sub, tt.group, got, tt.want)
		}
	}
}
