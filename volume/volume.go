package volume

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
)

// A Plugin handles one kind of volume source.
type Plugin interface {
	// Name is the plug-in's name as upstream spells it, "kubernetes.io/configmap".
	Name() string
	// Supports reports whether v is of this plug-in's kind.
	Supports(v *corev1.Volume) bool
	// SetUp makes the volume's content available and returns where. It is called
	// again for the same volume when the kubelet resyncs: same input, same result;
	// content that comes from the API (ConfigMap, Secret, projected, downward API)
	// is brought up to date by an atomic switch of the ..data link.
	SetUp(ctx context.Context, r Request) (Mounted, error)
	// TearDown undoes SetUp; dir is Request.Dir. It succeeds when nothing is there.
	TearDown(ctx context.Context, dir string) error
	// Live reports whether the content follows the API, so that SetUp must be
	// called again when a source changes.
	Live() bool
}

// A Request is one volume of one pod.
type Request struct {
	Pod    *corev1.Pod
	Volume *corev1.Volume
	Dir    string // the volume's own directory on the node; SetUp creates it
	// FSGroup owns the volume's files if not nil; FSGroupPolicy is the pod's fsGroupChangePolicy.
	FSGroup       *int64
	FSGroupPolicy corev1.PodFSGroupChangePolicy
	Sources       Sources
	// Claim and Persistent are set for a volume that is a claim's.
	Claim      *corev1.PersistentVolumeClaim
	Persistent *corev1.PersistentVolume
	// ReadOnly says that the pod asks for the whole claim read-only.
	ReadOnly bool
}

// Mounted says where a volume's content is on the node.
type Mounted struct {
	HostPath string
	ReadOnly bool // the content cannot be written whatever the mount says
	// Block says that HostPath is a block device, for volumeDevices.
	Block bool
	// RefreshAt is when SetUp must be called again although no source changed
	// (a token nears its end); zero means never.
	RefreshAt time.Time
}

// Sources is what plug-ins read from the API. Objects are shared: do not modify
// them. Absent objects are NotFound API errors.
type Sources interface {
	ConfigMap(namespace, name string) (*corev1.ConfigMap, error)
	Secret(namespace, name string) (*corev1.Secret, error)
	// Node is the node's own object.
	Node() (*corev1.Node, error)
	// Token asks for a bound service account token.
	Token(ctx context.Context, namespace, serviceAccount string, req *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error)
	// TrustAnchors returns the certificates of the ClusterTrustBundles that p names or
	// selects, in PEM, each once.
	TrustAnchors(p *corev1.ClusterTrustBundleProjection) ([]byte, error)
	// Credential returns the certificate that was issued for the pod. One that has to be
	// asked for first is an error, until it is issued.
	Credential(ctx context.Context, pod *corev1.Pod, at Projection, p *corev1.PodCertificateProjection) (Credential, error)
	// PodStatus is the newest known status of the pod (addresses for the downward API).
	PodStatus(pod *corev1.Pod) corev1.PodStatus
}

// A Projection is one source of a projected volume of a pod.
type Projection struct {
	Volume string
	Index  int
}

// A Credential is a private key (PKCS #8) and its chain of certificates, both in PEM.
type Credential struct {
	Key, Chain []byte
	// LookAt is when to ask for the credential again, to renew it.
	LookAt time.Time
}
