package all_test

import (
	"errors"
	"os"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/volume"
	"github.com/periplus/periplus/volume/all"
	"github.com/periplus/periplus/volume/volumetest"
)

func sources() *volumetest.Sources {
	s := volumetest.NewSources()
	s.SetConfigMap("ns", "config", map[string]string{"a": "1", "b": "2"})
	s.SetSecret("ns", "secret", map[string][]byte{"key": []byte("s3cret")})
	s.OnToken(func(r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
		if r.Spec.BoundObjectRef == nil || r.Spec.BoundObjectRef.UID != "uid" {
			return nil, errors.New("token is not bound to the pod")
		}
		out := r.DeepCopy()
		out.Status = authenticationv1.TokenRequestStatus{Token: "tok", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))}
		return out, nil
	})
	return s
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	hour, limit := int64(3600), resource.MustParse("1Mi")
	for name, c := range map[string]volumetest.Case{
		"emptyDir":        {Volume: volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), Want: map[string]string{}},
		"emptyDir memory": {Root: true, Volume: volumeOf(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory", SizeLimit: &limit}}), Want: map[string]string{}},
		"configMap": {
			Volume: volumeOf(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}}),
			Want:   map[string]string{"a": "1", "b": "2"},
		},
		"configMap items": {
			Volume: volumeOf(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: "config"},
				Items:                []corev1.KeyToPath{{Key: "a", Path: "sub/dir/a.conf"}},
			}}),
			Want: map[string]string{"sub/dir/a.conf": "1"},
		},
		"secret": {
			Root:   true,
			Volume: volumeOf(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}}),
			Want:   map[string]string{"key": "s3cret"},
		},
		"downwardAPI": {
			Volume: volumeOf(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "labels", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels"}},
			}}}),
			Want: map[string]string{"labels": `app="web"`},
		},
		"projected": {
			Root: true,
			Volume: volumeOf(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: &hour}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Items: []corev1.KeyToPath{{Key: "a", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}}},
				{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: new(true)}},
				{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: new("anchors"), Path: "trust.pem"}},
				{PodCertificate: &corev1.PodCertificateProjection{SignerName: "ex/s", CredentialBundlePath: "both.pem", KeyPath: "key.pem"}},
			}}}),
			Want: map[string]string{
				"token": "tok", "ca.crt": "1", "namespace": "ns", "trust.pem": "anchors",
				"both.pem": "key of pod\nchain of ex/s\n", "key.pem": "key of pod\n",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.Sources = sources()
			c.Plugin = pluginFor(t, &c.Volume)
			volumetest.Run(t, c)
		})
	}
}

// Wording of what people see in events.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for want, source := range map[string]corev1.VolumeSource{
		`configmap "y" not found`:                                      {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "y"}}},
		`secret "y" not found`:                                         {Secret: &corev1.SecretVolumeSource{SecretName: "y"}},
		`configmap references non-existent config key: gone`:           {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Items: []corev1.KeyToPath{{Key: "gone", Path: "x"}}}},
		`references non-existent secret key: gone`:                     {Secret: &corev1.SecretVolumeSource{SecretName: "secret", Items: []corev1.KeyToPath{{Key: "gone", Path: "x"}}}},
		`emptyDir medium "HugePages" is not supported by this node`:    {EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePages"}},
		`hostPath type check failed: /nonexistent is not a directory`:  {HostPath: &corev1.HostPathVolumeSource{Path: "/nonexistent", Type: new(corev1.HostPathDirectory)}},
		`hostPath type check failed: /dev/null is not a block device`:  {HostPath: &corev1.HostPathVolumeSource{Path: "/dev/null", Type: new(corev1.HostPathBlockDev)}},
		`hostPath type check failed: /etc/passwd is not a socket file`: {HostPath: &corev1.HostPathVolumeSource{Path: "/etc/passwd", Type: new(corev1.HostPathSocket)}},
		`invalid path: must not contain '..': a/../../b`:               {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}, Items: []corev1.KeyToPath{{Key: "a", Path: "a/../../b"}}}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			v := volumeOf(source)
			_, err := pluginFor(t, &v).SetUp(t.Context(), volume.Request{
				Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: "uid"}}, Volume: &v, Dir: t.TempDir() + "/v", Sources: sources(),
			})
			if err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

func TestHostPathTypes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := dir + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind corev1.HostPathType
		path string
		ok   bool
	}{
		{"", dir, true}, {"", dir + "/made", true},
		{"Directory", dir, true}, {"Directory", file, false},
		{"DirectoryOrCreate", dir + "/new/deep", true}, {"DirectoryOrCreate", file, false},
		{"File", file, true}, {"File", dir, false}, {"File", dir + "/absent", false},
		{"FileOrCreate", dir + "/newfile", true}, {"FileOrCreate", dir, false},
		{"CharDevice", "/dev/null", true}, {"CharDevice", file, false},
		{"BlockDevice", file, false}, {"Socket", file, false}, {"Nonsense", file, false},
	} {
		v := volumeOf(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: c.path, Type: &c.kind}})
		m, err := pluginFor(t, &v).SetUp(t.Context(), volume.Request{Volume: &v})
		if (err == nil) != c.ok {
			t.Errorf("%s %s: %v, want success: %v", c.kind, c.path, err, c.ok)
		}
		if _, statErr := os.Stat(c.path); err == nil && (m.HostPath != c.path || statErr != nil) {
			t.Errorf("%s %s: mounted %v, %v", c.kind, c.path, m, statErr)
		}
	}
}

func volumeOf(s corev1.VolumeSource) corev1.Volume { return corev1.Volume{Name: "v", VolumeSource: s} }

func pluginFor(t *testing.T, v *corev1.Volume) volume.Plugin {
	t.Helper()
	for _, p := range all.Plugins() {
		if p.Supports(v) {
			return p
		}
	}
	t.Fatal("no plug-in for the volume")
	return nil
}
