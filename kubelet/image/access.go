package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// access decides who may use an image that is on the node already (KEP-2535): an
// image that was there before or that a registry gave to anybody is free; one
// that needed a pull secret is for pods that have that secret. Everybody else has
// to ask the registry. What was pulled and with what is recorded in one file per
// image, with upstream's names and format.
type access struct {
	dir string // "" : nothing is recorded, everything is free

	mu sync.Mutex // held over reading and replacing a record
}

// mostSecrets bounds a record's growth through secrets that merely match.
const mostSecrets = 100

// pulledRecord is an ImagePulledRecord of kubelet.config.k8s.io/v1beta1.
type pulledRecord struct {
	metav1.TypeMeta   `json:",inline"`
	LastUpdatedTime   metav1.Time                `json:"lastUpdatedTime"`
	ImageRef          string                     `json:"imageRef"`
	CredentialMapping map[string]pullCredentials `json:"credentialMapping,omitempty"`
}

type pullCredentials struct {
	KubernetesSecrets  []pullSecret `json:"kubernetesSecrets,omitempty"`
	NodePodsAccessible bool         `json:"nodePodsAccessible,omitempty"`
}

type pullSecret struct {
	UID            types.UID `json:"uid"`
	Namespace      string    `json:"namespace"`
	Name           string    `json:"name"`
	CredentialHash string    `json:"credentialHash,omitempty"`
}

func (s pullSecret) sameObject(o pullSecret) bool {
	return s.UID == o.UID && s.Namespace == o.Namespace && s.Name == o.Name
}

// allowed reports whether a pod with these credentials may use the image without
// asking the registry. What cannot be read is not allowed.
func (a *access) allowed(image, ref string, creds func() []credential) bool {
	if a.dir == "" {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r, err := a.read(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return true // it was not this kubelet that pulled it
	}
	name, nameErr := withoutTag(image)
	if err != nil || nameErr != nil {
		return false
	}
	known, ok := r.CredentialMapping[name]
	if !ok || known.NodePodsAccessible || len(known.KubernetesSecrets) == 0 {
		return known.NodePodsAccessible
	}
	for _, c := range creds() {
		for _, k := range known.KubernetesSecrets {
			sameHash := k.CredentialHash != "" && k.CredentialHash == c.source.CredentialHash
			if !sameHash && !k.sameObject(c.source) {
				continue
			}
			if !slices.Contains(known.KubernetesSecrets, c.source) && len(known.KubernetesSecrets) < mostSecrets {
				// It will be known by both from now on; if that fails it is found again.
				_ = a.add(r, name, &c.source)
			}
			return true
		}
	}
	return false
}

// pulled records that the image was pulled with used, or without credentials (nil).
func (a *access) pulled(image, ref string, used *pullSecret) error {
	if a.dir == "" {
		return nil
	}
	name, err := withoutTag(image)
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r, err := a.read(ref)
	if err != nil {
		r = &pulledRecord{ImageRef: ref}
	}
	return a.add(r, name, used)
}

// add writes r with one more permission, unless it has it.
func (a *access) add(r *pulledRecord, name string, used *pullSecret) error {
	c, ok := r.CredentialMapping[name]
	switch {
	case ok && (c.NodePodsAccessible || used != nil && slices.Contains(c.KubernetesSecrets, *used)):
		return nil
	case used == nil:
		c = pullCredentials{NodePodsAccessible: true}
	default:
		c.KubernetesSecrets = append(slices.DeleteFunc(slices.Clone(c.KubernetesSecrets), used.sameObject), *used)
	}
	if r.CredentialMapping == nil {
		r.CredentialMapping = map[string]pullCredentials{}
	}
	r.CredentialMapping[name] = c
	r.TypeMeta = metav1.TypeMeta{Kind: "ImagePulledRecord", APIVersion: "kubelet.config.k8s.io/v1beta1"}
	r.LastUpdatedTime = metav1.NewTime(time.Now())
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := a.path(r.ImageRef)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func (a *access) read(ref string) (*pulledRecord, error) {
	b, err := os.ReadFile(a.path(ref))
	if err != nil {
		return nil, err
	}
	r := &pulledRecord{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("record of image %s: %w", ref, err)
	}
	return r, nil
}

func (a *access) path(ref string) string {
	sum := sha256.Sum256([]byte(ref))
	return filepath.Join(a.dir, "pulled", "sha256-"+hex.EncodeToString(sum[:]))
}

// withoutTag is an image's name as the container has it, without tag and digest.
func withoutTag(image string) (string, error) {
	ref, err := reference.Parse(image)
	if err != nil {
		return "", err
	}
	if d, ok := ref.(reference.Digested); ok {
		image = strings.TrimSuffix(image, "@"+d.Digest().String())
	}
	if t, ok := ref.(reference.Tagged); ok {
		image = strings.TrimSuffix(image, ":"+t.Tag())
	}
	return image, nil
}
