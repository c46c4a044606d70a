package image

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type dockerAuth struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
}

// A credential is what one pull secret has for a registry.
type credential struct {
	auth   *runtimeapi.AuthConfig
	source pullSecret
}

// credentials returns what the pod's pull secrets have for the image, the most
// specific registry first. Secrets that are missing or broken are passed over.
func (p *Puller) credentials(pod *corev1.Pod, image string) []credential {
	type match struct {
		key string
		credential
	}
	var matches []match
	for _, ref := range pod.Spec.ImagePullSecrets {
		if p.cfg.Secrets == nil {
			break
		}
		secret, err := p.cfg.Secrets.Secret(pod.Namespace, ref.Name)
		if err != nil {
			continue
		}
		for registry, a := range parseSecret(secret) {
			if key := normalise(registry); matchesImage(key, image) {
				matches = append(matches, match{key, credential{a.config(), pullSecret{secret.UID, secret.Namespace, secret.Name, a.hash()}}})
			}
		}
	}
	slices.SortStableFunc(matches, func(a, b match) int {
		if len(a.key) != len(b.key) {
			return len(b.key) - len(a.key)
		}
		return strings.Compare(a.key, b.key)
	})
	out := make([]credential, 0, len(matches))
	for _, m := range matches {
		out = append(out, m.credential)
	}
	return out
}

// hash recognises the same credentials in another secret.
func (a dockerAuth) hash() string {
	b, err := json.Marshal(a)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (a dockerAuth) config() *runtimeapi.AuthConfig {
	if a.Username == "" && a.Auth != "" {
		if b, err := base64.StdEncoding.DecodeString(a.Auth); err == nil {
			a.Username, a.Password, _ = strings.Cut(string(b), ":")
		}
	}
	return &runtimeapi.AuthConfig{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken}
}

func parseSecret(s *corev1.Secret) map[string]dockerAuth {
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		var f struct {
			Auths map[string]dockerAuth `json:"auths"`
		}
		if json.Unmarshal(s.Data[corev1.DockerConfigJsonKey], &f) == nil {
			return f.Auths
		}
	case corev1.SecretTypeDockercfg:
		var auths map[string]dockerAuth
		if json.Unmarshal(s.Data[corev1.DockerConfigKey], &auths) == nil {
			return auths
		}
	}
	return nil
}

// normalise turns a key of a Docker configuration ("https://index.docker.io/v1/",
// "registry:5000/team") into host and path.
func normalise(registry string) string {
	s := registry
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return registry
	}
	p := strings.TrimSuffix(u.Path, "/")
	if p == "/v1" || p == "/v2" {
		p = ""
	}
	if u.Host == "index.docker.io" || u.Host == "registry-1.docker.io" {
		u.Host = "docker.io"
	}
	return u.Host + p
}

// matchesImage compares host (with wildcards, label by label) and path prefix.
func matchesImage(key, image string) bool {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return false
	}
	keyHost, keyPath, _ := strings.Cut(key, "/")
	host := reference.Domain(named)
	kh, kp, kHasPort := strings.Cut(keyHost, ":")
	ih, ip, _ := strings.Cut(host, ":")
	if kHasPort && kp != ip || !kHasPort && ip != "" {
		return false
	}
	kl, il := strings.Split(kh, "."), strings.Split(ih, ".")
	if len(kl) != len(il) {
		return false
	}
	for i := range kl {
		if ok, err := path.Match(kl[i], il[i]); err != nil || !ok {
			return false
		}
	}
	return keyPath == "" || strings.HasPrefix(reference.Path(named), keyPath)
}
