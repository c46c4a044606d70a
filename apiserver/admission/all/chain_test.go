package all_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/periplus/periplus/apiserver/admission/all"
	"github.com/periplus/periplus/apiserver/rest"
)

// off are the plug-ins that have to be named.
var off = []string{"AlwaysAdmit", "AlwaysDeny", "AlwaysPullImages", "DenyServiceExternalIPs", "EventRateLimit", "ExtendedResourceToleration", "ImagePolicyWebhook",
	"LimitPodHardAntiAffinityTopology", "NamespaceAutoProvision", "NamespaceExists", "OwnerReferencesPermissionEnforcement", "PodNodeSelector", "PodTolerationRestriction"}

// TestOrder: the plug-ins are asked in upstream's order, and those that are off when they are named.
func TestOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`), 0o600); err != nil {
		t.Fatal(err)
	}
	configurations := map[string][]byte{
		"EventRateLimit":     []byte("apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits: [{type: Server, qps: 1, burst: 1}]"),
		"ImagePolicyWebhook": []byte("imagePolicy: {kubeConfigFile: " + file + "}"),
	}
	names := func(o all.Options) []string {
		t.Helper()
		chain, err := all.Chain(&rest.Server{}, o)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]string, len(chain))
		for i, p := range chain {
			out[i] = p.Name()
		}
		return out
	}
	got := names(all.Options{Enable: off, Configurations: configurations})
	want := strings.Fields(`AlwaysAdmit NamespaceAutoProvision NamespaceLifecycle NamespaceExists LimitPodHardAntiAffinityTopology LimitRanger ServiceAccount
		NodeRestriction TaintNodesByCondition AlwaysPullImages ImagePolicyWebhook PodSecurity PodNodeSelector Priority DefaultTolerationSeconds
		PodTolerationRestriction EventRateLimit ExtendedResourceToleration DefaultStorageClass StorageObjectInUseProtection
		OwnerReferencesPermissionEnforcement PersistentVolumeClaimResize RuntimeClass CertificateApproval CertificateSigning ClusterTrustBundleAttest
		CertificateSubjectRestriction DefaultIngressClass DenyServiceExternalIPs PodTopologyLabels NodeDeclaredFeatureValidator PodResizeValidator
		MutatingAdmissionPolicy MutatingAdmissionWebhook ValidatingAdmissionPolicy ValidatingAdmissionWebhook ResourceQuota AlwaysDeny`)
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	usual := names(all.Options{Disable: []string{"PodSecurity"}})
	if len(usual) != len(want)-len(off)-1 || slices.Contains(usual, "PodSecurity") || slices.Contains(usual, "AlwaysDeny") {
		t.Error(usual)
	}
	for _, needed := range []string{"EventRateLimit", "ImagePolicyWebhook"} {
		if _, err := all.Chain(&rest.Server{}, all.Options{Enable: []string{needed}}); err == nil || !strings.Contains(err.Error(), needed) {
			t.Errorf("%s without a configuration: %v", needed, err)
		}
	}
}
