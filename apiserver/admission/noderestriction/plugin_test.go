package noderestriction_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/admission/admissiontest"
	"github.com/periplus/periplus/apiserver/admission/noderestriction"
)

var (
	self  = &user.DefaultInfo{Name: "system:node:n1", Groups: []string{user.NodesGroup}}
	admin = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}

	nodes, pods, leases = of("", "nodes"), of("", "pods"), of("coordination.k8s.io", "leases")
	claims, accounts    = of("", "persistentvolumeclaims"), of("", "serviceaccounts")
	slices, csinodes    = of("resource.k8s.io", "resourceslices"), of("storage.k8s.io", "csinodes")
	requests            = of("certificates.k8s.io", "certificatesigningrequests")
	podCertificates     = of("certificates.k8s.io", "podcertificaterequests")
)

func of(group, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}
}

func node(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u-n1", Labels: labels}, Spec: corev1.NodeSpec{Taints: taints}}
}

func pod(on string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u-p"}, Spec: corev1.PodSpec{NodeName: on, ServiceAccountName: "sa"}}
	for _, f := range change {
		f(p)
	}
	return p
}

// mirror is the pod of a node for one of its files.
func mirror(change ...func(*corev1.Pod)) *corev1.Pod {
	p := pod("n1")
	p.Spec.ServiceAccountName, p.Annotations = "", map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "u-n1", Controller: &yes}}
	for _, f := range change {
		f(p)
	}
	return p
}

func volume(v corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: v})
	}
}

func create(gvr schema.GroupVersionResource, obj runtime.Object) admission.Attributes {
	return admission.Attributes{User: self, Operation: admission.Create, Resource: gvr, Namespace: "ns", Object: obj}
}

func update(gvr schema.GroupVersionResource, subresource string, old, obj runtime.Object) admission.Attributes {
	return admission.Attributes{User: self, Operation: admission.Update, Resource: gvr, Subresource: subresource, Namespace: "ns",
		Name: obj.(metav1.Object).GetName(), Old: old, Object: obj}
}

func as(u user.Info, a admission.Attributes) admission.Attributes {
	a.User = u
	return a
}

func TestNodesAndPods(t *testing.T) {
	t.Parallel()
	plugin := noderestriction.New(admissiontest.Objects{
		"nodes": {node("n1", nil)},
		"pods":  {pod("n1", func(p *corev1.Pod) { p.Name = "here" }), pod("n2", func(p *corev1.Pod) { p.Name = "there" })},
	})
	evict := func(name string) admission.Attributes {
		a := create(pods, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}})
		a.Subresource = "eviction"
		return a
	}
	remove := func(name string) admission.Attributes {
		return admission.Attributes{User: self, Operation: admission.Delete, Resource: pods, Namespace: "ns", Name: name}
	}
	connect := admission.Attributes{User: self, Operation: admission.Connect, Resource: pods, Subresource: "exec", Namespace: "ns", Name: "here", Object: &corev1.PodExecOptions{}}
	env := func(s corev1.EnvVarSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "E", ValueFrom: &s}}}}
		}
	}
	admissiontest.Run(t, plugin, map[string]admissiontest.Case{
		"own node":                 {Attributes: create(nodes, node("n1", map[string]string{"kubernetes.io/os": "linux", "mine": "x"}))},
		"another node":             {Attributes: create(nodes, node("n2", nil)), Want: `nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"`},
		"another by admin":         {Attributes: as(admin, create(nodes, node("n2", nil)))},
		"nameless":                 {Attributes: as(&user.DefaultInfo{Name: "system:node:", Groups: self.Groups}, create(nodes, node("n2", nil))), Want: `could not determine node from user "system:node:"`},
		"role label":               {Attributes: create(nodes, node("n1", map[string]string{"node-role.kubernetes.io/control-plane": ""})), Want: "is not allowed to set the following labels: node-role.kubernetes.io/control-plane"},
		"restricted label":         {Attributes: update(nodes, "", node("n1", nil), node("n1", map[string]string{"x.node-restriction.kubernetes.io/a": ""})), Want: "is not allowed to modify labels: x.node-restriction"},
		"kubelet's label":          {Attributes: update(nodes, "status", node("n1", nil), node("n1", map[string]string{"a.kubelet.kubernetes.io/b": "", "node.kubernetes.io/c": ""}))},
		"taint":                    {Attributes: update(nodes, "", node("n1", nil, corev1.Taint{Key: "a"}), node("n1", nil)), Want: "not allowed to modify taints"},
		"owners of nodes":          {Attributes: update(nodes, "", node("n1", nil), func() *corev1.Node { n := node("n1", nil); n.OwnerReferences = mirror().OwnerReferences; return n }()), Want: "not allowed to modify ownerReferences"},
		"own pod's status":         {Attributes: update(pods, "status", pod("n1"), pod("n1"))},
		"others' pod status":       {Attributes: update(pods, "status", pod("n2"), pod("n2")), Want: "can only update pod status for pods with spec.nodeName set to itself"},
		"labels by status":         {Attributes: update(pods, "status", pod("n1"), pod("n1", func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} })), Want: "cannot update labels through pod status"},
		"claims by status":         {Attributes: update(pods, "status", pod("n1"), pod("n1", func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "c"}} })), Want: "cannot update resource claim statues"},
		"spec":                     {Attributes: update(pods, "", pod("n1"), pod("n1")), Want: "can only create and delete mirror pods"},
		"exec":                     {Attributes: connect, Want: `unexpected pod subresource "exec", only 'status' and 'eviction' are allowed`},
		"evict own":                {Attributes: evict("here")},
		"evict others'":            {Attributes: evict("there"), Want: "node n1 can only evict pods with spec.nodeName set to itself"},
		"delete own":               {Attributes: remove("here")},
		"delete others' pod":       {Attributes: remove("there"), Want: `node "n1" can only delete pods with spec.nodeName set to itself`},
		"delete none":              {Attributes: remove("none"), Want: `pods "none" not found`},
		"mirror pod":               {Attributes: create(pods, mirror())},
		"mirror pod with a disk":   {Attributes: create(pods, mirror(volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}})))},
		"mirror pod of other":      {Attributes: create(pods, mirror(func(p *corev1.Pod) { p.Spec.NodeName = "n2" })), Want: "can only create pods with spec.nodeName set to itself"},
		"pod":                      {Attributes: create(pods, pod("n1")), Want: "can only create mirror pods"},
		"mirror without owner":     {Attributes: create(pods, mirror(func(p *corev1.Pod) { p.OwnerReferences = nil })), Want: "can only create pods with an owner reference set to itself"},
		"mirror of an older node":  {Attributes: create(pods, mirror(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "x" })), Want: "node n1 UID mismatch: expected x got u-n1"},
		"mirror without control":   {Attributes: create(pods, mirror(func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil })), Want: "with a controller owner reference"},
		"mirror that blocks":       {Attributes: create(pods, mirror(func(p *corev1.Pod) { p.OwnerReferences[0].BlockOwnerDeletion = p.OwnerReferences[0].Controller })), Want: "must not set blockOwnerDeletion"},
		"mirror with account":      {Attributes: create(pods, mirror(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "sa" })), Want: "can not create pods that reference serviceaccounts"},
		"mirror with secret":       {Attributes: create(pods, mirror(env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}))), Want: "can not create pods that reference secrets"},
		"mirror with config map":   {Attributes: create(pods, mirror(env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{}}))), Want: "can not create pods that reference configmaps"},
		"mirror with claim":        {Attributes: create(pods, mirror(volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}))), Want: "can not create pods that reference persistentvolumeclaims"},
		"mirror with driver":       {Attributes: create(pods, mirror(volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}))), Want: "can not create pods that reference csidrivers (via CSI volumes)"},
		"mirror with pull secret":  {Attributes: create(pods, mirror(func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} })), Want: "can not create pods that reference secrets"},
		"mirror with token volume": {Attributes: create(pods, mirror(volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}}}}))), Want: "can not create pods that reference serviceaccounts (via projected volumes)"},
	})
}

func TestWhatIsTheNodes(t *testing.T) {
	t.Parallel()
	claim := func(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", ResourceVersion: "7"}}
		for _, change := range changes {
			change(c)
		}
		return c
	}
	on := func(node string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": node}
		}
	}
	grown := func(c *corev1.PersistentVolumeClaim) {
		c.ResourceVersion, c.Status.Capacity = "", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	}
	lease := func(namespace, name string) admission.Attributes {
		return admission.Attributes{User: self, Operation: admission.Update, Resource: leases, Namespace: namespace, Name: name, Object: &coordinationv1.Lease{}}
	}
	device := func(of string) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: &of}}
	}
	withdraw := func(of string) admission.Attributes {
		return admission.Attributes{User: self, Operation: admission.Delete, Resource: slices, Name: "s", Old: device(of)}
	}
	csi := func(name string) *storagev1.CSINode {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	csr := func(cn, signer string) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: signer, Request: request(t, cn)}}
	}
	admissiontest.Run(t, noderestriction.New(admissiontest.Objects{}), map[string]admissiontest.Case{
		"own lease":               {Attributes: lease("kube-node-lease", "n1")},
		"others' lease":           {Attributes: lease("kube-node-lease", "n2"), Want: "same name as the requesting node"},
		"leader lease":            {Attributes: lease("kube-system", "n1"), Want: `in the "kube-node-lease" system namespace`},
		"claim":                   {Attributes: update(claims, "", claim(grown), claim(grown)), Want: "may only update PVC status"},
		"claim taken":             {Attributes: update(claims, "", claim(), claim(on("n1")))},
		"claim given back":        {Attributes: update(claims, "", claim(on("n1")), claim())},
		"claim for another node":  {Attributes: update(claims, "", claim(), claim(on("n2"))), Want: "may only update PVC status"},
		"claim of another node":   {Attributes: update(claims, "", claim(on("n2")), claim()), Want: "may only update PVC status"},
		"claim taken and changed": {Attributes: update(claims, "", claim(), claim(on("n1"), func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" })), Want: "may only update PVC status"},
		"size of a claim":         {Attributes: update(claims, "status", claim(func(*corev1.PersistentVolumeClaim) {}), claim(grown))},
		"phase of a claim":        {Attributes: update(claims, "status", claim(grown), claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimBound })), Want: "is not allowed to update fields other than status.quantity and status.conditions"},
		"labels of a claim":       {Attributes: update(claims, "status", claim(grown), claim(func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} })), Want: "is not allowed to update fields"},
		"own CSINode":             {Attributes: create(csinodes, csi("n1"))},
		"others' CSINode":         {Attributes: create(csinodes, csi("n2")), Want: "can only access CSINode with the same name"},
		"own device":              {Attributes: create(slices, device("n1"))},
		"others' device":          {Attributes: create(slices, device("n2")), Want: "can only create ResourceSlice with the same NodeName"},
		"devices of no node":      {Attributes: create(slices, &resourcev1.ResourceSlice{}), Want: "can only create ResourceSlice with the same NodeName"},
		"own device withdrawn":    {Attributes: withdraw("n1")},
		"others' device gone":     {Attributes: withdraw("n2"), Want: "can only delete ResourceSlice with the same NodeName"},
		"own certificate":         {Attributes: create(requests, csr("system:node:n1", certificatesv1.KubeletServingSignerName))},
		"others' certificate":     {Attributes: create(requests, csr("system:node:n2", certificatesv1.KubeAPIServerClientKubeletSignerName)), Want: "can only create a node CSR with CN=system:node:n1"},
		"certificate of a signer": {Attributes: create(requests, csr("anybody", "example.com/s"))},
		"no certificate request": {Attributes: create(requests, &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: certificatesv1.KubeletServingSignerName}}),
			Want: "unable to parse csr: PEM block type must be CERTIFICATE REQUEST"},
	})
}

func request(t *testing.T, cn string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: cn}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestTokensAndCertificatesOfPods(t *testing.T) {
	t.Parallel()
	token := func(audience string) corev1.VolumeSource {
		return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: audience}}}}}
	}
	certificate := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/s"}}}}}
	plugin := noderestriction.New(admissiontest.Objects{
		"nodes":           {node("n1", nil)},
		"serviceaccounts": {&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", Namespace: "ns", UID: "u-sa"}}},
		"pods": {
			pod("n1", volume(token("")), volume(token("vault")), volume(certificate),
				volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}})),
			pod("n2", func(p *corev1.Pod) { p.Name = "there" }),
		},
		"persistentvolumeclaims": {&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"}}},
		"persistentvolumes": {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com"}}}}},
		"csidrivers": {&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}, Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: "disks"}}}}},
	})
	ask := func(name, uid string, audiences ...string) admission.Attributes {
		r := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: name}}}
		if r.Spec.BoundObjectRef.UID = "u-p"; uid != "u-p" {
			r.Spec.BoundObjectRef.UID = ""
		}
		a := create(accounts, r)
		a.Subresource, a.Name = "token", "sa"
		return a
	}
	unbound := create(accounts, &authenticationv1.TokenRequest{})
	unbound.Subresource = "token"
	granted := ask("p", "u-p", "special")
	granted.Authorizer = admissiontest.Allowed{"request-serviceaccounts-token-audience /special/ ns/sa"}
	pcr := func(change func(*certificatesv1.PodCertificateRequestSpec)) admission.Attributes {
		r := &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: "example.com/s", PodName: "p", PodUID: "u-p", ServiceAccountName: "sa", ServiceAccountUID: "u-sa", NodeName: "n1", NodeUID: "u-n1",
		}}
		change(&r.Spec)
		return create(podCertificates, r)
	}
	other := pcr(func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "example.com/other" })
	other.Authorizer = admissiontest.Allowed{"request-serviceaccounts-podcertificate-signer certificates.k8s.io/example.com:other/ ns/sa"}
	admissiontest.Run(t, plugin, map[string]admissiontest.Case{
		"token of a volume":         {Attributes: ask("p", "u-p")},
		"audience of a volume":      {Attributes: ask("p", "u-p", "vault")},
		"audience of a driver":      {Attributes: ask("p", "u-p", "disks")},
		"other audience":            {Attributes: ask("p", "u-p", "else"), Want: `system:node:n1 is not authorized to request tokens for audience "else"`},
		"other audience, by a role": {Attributes: granted},
		"two audiences":             {Attributes: ask("p", "u-p", "vault", "disks"), Want: "node may only request 0 or 1 audiences"},
		"unbound token":             {Attributes: unbound, Want: "node requested token not bound to a pod"},
		"bound by name alone":       {Attributes: ask("p", ""), Want: "node requested token with a pod binding without a uid"},
		"token elsewhere":           {Attributes: ask("there", "u-p"), Want: "node requested token bound to a pod scheduled on a different node"},
		"token of no pod":           {Attributes: ask("none", "u-p"), Want: `pods "none" not found`},
		"certificate":               {Attributes: pcr(func(*certificatesv1.PodCertificateRequestSpec) {})},
		"certificate elsewhere":     {Attributes: pcr(func(s *certificatesv1.PodCertificateRequestSpec) { s.NodeName = "n2" }), Want: `PodCertificateRequest.Spec.NodeName="n2", which is not the requesting node "n1"`},
		"certificate for no pod":    {Attributes: pcr(func(s *certificatesv1.PodCertificateRequestSpec) { s.PodUID = "x" }), Want: "which differs from running pod"},
		"another account":           {Attributes: pcr(func(s *certificatesv1.PodCertificateRequestSpec) { s.ServiceAccountName = "default" }), Want: "contains serviceAccountName"},
		"another signer": {Attributes: pcr(func(s *certificatesv1.PodCertificateRequestSpec) { s.SignerName = "example.com/other" }),
			Want: `pod "ns/p" does not mount a podCertificate projected volume for signer "example.com/other"`},
		"another signer, by a role": {Attributes: other},
	})
}
