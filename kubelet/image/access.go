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
// image that was put there by other means or that a registry gave to anybody is
// free; one that needed a pull secret is for pods that have that secret. Everybody
// else has to ask the registry. What was pulled and with what is recorded with
// upstream's names and format:
//
//	<dir>/pulling/sha256-<of the image's name>   while it is being pulled
//	<dir>/pulled/sha256-<of the image's ID>      afterwards
//
// Unlike upstream a name that an import gave to an image stays free when the same
// image is pulled under another name.
type access struct {
	dir string // "" : nothing is recorded, everything is free

	mu      sync.Mutex     // guards pulling; held over reading and replacing a record
	pulling map[string]int // pulls under way, by the image's name
}

const (
	recordVersion = "kubelet.config.k8s.io/v1beta1"
	// mostSecrets bounds a record's growth through secrets that merely match.
	mostSecrets = 100
)

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
// asking the registry. named says that the runtime knows the image by this name,
// not only by its ID. What cannot be read is not allowed.
func (a *access) allowed(image, ref string, named bool, creds func() []credential) bool {
	if a.dir == "" {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := os.Stat(a.intent(image)); !errors.Is(err, fs.ErrNotExist) {
		return false // being pulled, or the kubelet was killed over it
	}
	r, err := a.read(ref)
	if errors.Is(err, fs.ErrNotExist) {
		return true // it was not this kubelet that pulled it
	}
	name, nameErr := withoutTag(image)
	if err != nil || nameErr != nil {
		return false
	}
	known, ok := r.CredentialMapping[name]
	switch {
	case !ok:
		return named // imported under this name, pulled under another
	case known.NodePodsAccessible:
		return true
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

// begin notes that the image is about to be pulled, until end.
func (a *access) begin(image string) error {
	if a.dir == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pulling == nil {
		a.pulling = map[string]int{}
	}
	a.pulling[image]++
	b, err := json.Marshal(struct {
		metav1.TypeMeta `json:",inline"`
		Image           string `json:"image"`
	}{metav1.TypeMeta{Kind: "ImagePullIntent", APIVersion: recordVersion}, image})
	if err != nil {
		return err
	}
	return replace(a.intent(image), b)
}

// end follows begin when the outcome has been recorded.
func (a *access) end(image string) {
	if a.dir == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pulling[image]--; a.pulling[image] == 0 {
		delete(a.pulling, image)
		os.Remove(a.intent(image))
	}
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
	r.TypeMeta = metav1.TypeMeta{Kind: "ImagePulledRecord", APIVersion: recordVersion}
	r.LastUpdatedTime = metav1.NewTime(time.Now())
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return replace(a.record(r.ImageRef), b)
}

func replace(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func (a *access) read(ref string) (*pulledRecord, error) {
	b, err := os.ReadFile(a.record(ref))
	if err != nil {
		return nil, err
	}
	r := &pulledRecord{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("record of image %s: %w", ref, err)
	}
	return r, nil
}

func (a *access) record(ref string) string   { return filepath.Join(a.dir, "pulled", fileName(ref)) }
func (a *access) intent(image string) string { return filepath.Join(a.dir, "pulling", fileName(image)) }

func fileName(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + hex.EncodeToString(sum[:])
}

// knows reports whether one of an image's names is in the repository of image.
func knows(names []string, image string) bool {
	want, err := reference.ParseNormalizedNamed(image)
	return err == nil && slices.ContainsFunc(names, func(n string) bool {
		have, err := reference.ParseNormalizedNamed(n)
		return err == nil && have.Name() == want.Name()
	})
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
