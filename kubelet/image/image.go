package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/cri"
)

// Waiting reasons of containers whose image is not there.
const (
	ErrImagePull      = "ErrImagePull"
	ImagePullBackOff  = "ImagePullBackOff"
	ErrImageNeverPull = "ErrImageNeverPull"
	InvalidImageName  = "InvalidImageName"
	ImageInspectError = "ImageInspectError"
)

// afterFailure is how long ErrImagePull stands before it turns into ImagePullBackOff.
const afterFailure = time.Second

// BackOff delays pulls that keep failing.
type BackOff interface {
	// Left returns the key's delay and what is left of it.
	Left(key string) (delay, left time.Duration)
	// Next notes a failure at the given time.
	Next(key string, event time.Time)
}

// Secrets reads pull secrets.
type Secrets interface {
	Secret(namespace, name string) (*corev1.Secret, error)
}

// Config of a Puller.
type Config struct {
	Images  cri.Images
	Secrets Secrets
	Events  record.EventRecorder
	BackOff BackOff
	// Dir records which pull secrets an image needed, so that pods without them
	// cannot use it. Empty: every pod may use every image that is present.
	Dir string
	Log *slog.Logger // default: slog.Default
}

// A Puller pulls images for containers. Pulls of different pods run side by side.
type Puller struct {
	cfg    Config
	access access

	mu       sync.Mutex         // guards lastFail
	lastFail map[string]failure // of pulls, by pod UID + "_" + image
}

// failure is the last failed pull of an image for a pod.
type failure struct {
	text, message string
	at            time.Time
}

// NewPuller returns a Puller.
func NewPuller(cfg Config) *Puller {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Puller{cfg: cfg, access: access{dir: cfg.Dir}, lastFail: map[string]failure{}}
}

// A Request is one container whose image is needed.
type Request struct {
	Pod       *corev1.Pod
	Container *corev1.Container
	Sandbox   *runtimeapi.PodSandboxConfig
	Event     func(kind, reason, message string) // about the container
}

// A Result is an image that is present.
type Result struct {
	Ref      string // for CreateContainer
	UID      *int64 // of the image's user, nil if it is none or a name
	Username string
	Pulled   bool // just now

	names []string // tags and digests
}

// An Error is why an image is not there.
type Error struct {
	Reason, Message string
	Again           time.Duration // when to come back
	Told            bool          // it was reported before: no event is due
}

func (e *Error) Error() string { return e.Reason + ": " + e.Message }

// Ensure makes the container's image present.
func (p *Puller) Ensure(ctx context.Context, r Request) (Result, *Error) {
	c := r.Container
	name, err := withDefaultTag(c.Image)
	if err != nil {
		msg := fmt.Sprintf("Failed to apply default image tag %q: %v", c.Image, err)
		r.Event(corev1.EventTypeWarning, "InspectFailed", msg)
		return Result{}, &Error{Reason: InvalidImageName, Message: msg, Again: time.Minute}
	}
	spec := &runtimeapi.ImageSpec{Image: name, UserSpecifiedImage: c.Image, Annotations: r.Pod.Annotations}
	found, err := p.inspect(ctx, spec)
	if err != nil {
		msg := fmt.Sprintf("Failed to inspect image %q: %v", c.Image, err)
		r.Event(corev1.EventTypeWarning, "InspectFailed", msg)
		return Result{}, &Error{Reason: ImageInspectError, Message: msg, Again: 10 * time.Second}
	}
	// An image that the pod may not use is treated as if it were not there: its
	// presence is nobody else's business.
	usable := found != nil && policyOf(c) != corev1.PullAlways &&
		p.access.allowed(name, found.Ref, knows(found.names, name), func() []credential { return p.credentials(r.Pod, name) })
	switch {
	case usable:
		r.Event(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image))
		return *found, nil
	case policyOf(c) == corev1.PullNever:
		msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
		r.Event(corev1.EventTypeWarning, "ErrImageNeverPull", msg)
		return Result{}, &Error{Reason: ErrImageNeverPull, Message: msg, Again: 10 * time.Second}
	}
	return p.pull(ctx, r, spec)
}

func (p *Puller) pull(ctx context.Context, r Request, spec *runtimeapi.ImageSpec) (Result, *Error) {
	image := r.Container.Image
	key := string(r.Pod.UID) + "_" + image
	last := p.failure(key)
	if stands := afterFailure - time.Since(last.at); last.text != "" && stands > 0 {
		return Result{}, &Error{Reason: ErrImagePull, Message: last.message, Again: stands, Told: true}
	}
	if _, left := p.cfg.BackOff.Left(key); left > 0 {
		msg := fmt.Sprintf("Back-off pulling image %q", image)
		r.Event(corev1.EventTypeNormal, "BackOff", msg)
		if last.text != "" {
			msg += ": " + ErrImagePull + ": " + last.text
		}
		return Result{}, &Error{Reason: ImagePullBackOff, Message: msg, Again: left}
	}
	r.Event(corev1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", image))
	began := time.Now()
	if err := p.access.begin(spec.Image); err != nil {
		return Result{}, &Error{Reason: ErrImagePull, Message: fmt.Sprintf("failed to record image pull intent for image %q: %v", image, err), Again: 10 * time.Second}
	}
	defer p.access.end(spec.Image)
	ref, used, err := p.pullWithSecrets(ctx, r, spec)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, &Error{Reason: ErrImagePull, Message: ctx.Err().Error()}
		}
		msg := fmt.Sprintf("Failed to pull image %q: %v", image, err)
		r.Event(corev1.EventTypeWarning, "Failed", msg)
		p.cfg.BackOff.Next(key, time.Now())
		p.setFailure(key, failure{err.Error(), messageOf(err), time.Now()})
		return Result{}, &Error{Reason: ErrImagePull, Message: messageOf(err), Again: afterFailure}
	}
	took := time.Since(began).Truncate(time.Millisecond)
	var size uint64
	found, err := p.inspect(ctx, &runtimeapi.ImageSpec{Image: ref})
	if err == nil && found == nil {
		found, err = p.inspect(ctx, spec)
	}
	if err != nil || found == nil {
		found = &Result{Ref: ref}
	} else {
		size = p.sizeOf(ctx, ref)
	}
	if found.Ref == "" {
		found.Ref = ref
	}
	if err := p.access.pulled(spec.Image, found.Ref, used); err != nil {
		p.cfg.Log.Warn("cannot record with what an image was pulled", "image", spec.Image, base.KeyError, err)
	}
	r.Event(corev1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %d bytes.", image, took, took, size))
	p.setFailure(key, failure{})
	found.Pulled = true
	return *found, nil
}

// messageOf is an error of the runtime as users know it.
func messageOf(err error) string {
	if s, ok := status.FromError(err); ok {
		return fmt.Sprintf("rpc error: code = %v desc = %s", s.Code(), s.Message())
	}
	return err.Error()
}

// pullWithSecrets tries the credentials that fit the image one after the other,
// or none at all if there are none; used says which ones did it.
func (p *Puller) pullWithSecrets(ctx context.Context, r Request, spec *runtimeapi.ImageSpec) (ref string, used *pullSecret, err error) {
	pull := func(auth *runtimeapi.AuthConfig) (string, error) {
		resp, err := p.cfg.Images.PullImage(ctx, &runtimeapi.PullImageRequest{Image: spec, Auth: auth, SandboxConfig: r.Sandbox})
		return resp.GetImageRef(), err
	}
	creds := p.credentials(r.Pod, spec.Image)
	if len(creds) == 0 {
		ref, err = pull(nil)
		return ref, nil, err
	}
	var errs []error
	for i := range creds {
		if ref, err = pull(creds[i].auth); err == nil {
			return ref, &creds[i].source, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 1 {
		return "", nil, errs[0]
	}
	return "", nil, errors.Join(errs...)
}

func (p *Puller) inspect(ctx context.Context, spec *runtimeapi.ImageSpec) (*Result, error) {
	resp, err := p.cfg.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: spec})
	if err != nil {
		return nil, err
	}
	img := resp.GetImage()
	if img == nil {
		return nil, nil
	}
	r := &Result{Ref: img.Id, Username: img.Username, names: slices.Concat(img.RepoTags, img.RepoDigests)}
	if img.Uid != nil {
		uid := img.Uid.Value
		r.UID = &uid
	}
	return r, nil
}

func (p *Puller) sizeOf(ctx context.Context, ref string) uint64 {
	resp, err := p.cfg.Images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: &runtimeapi.ImageSpec{Image: ref}})
	if err != nil {
		return 0
	}
	return resp.GetImage().GetSize()
}

func (p *Puller) failure(key string) failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastFail[key]
}

func (p *Puller) setFailure(key string, f failure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.text == "" {
		delete(p.lastFail, key)
		return
	}
	p.lastFail[key] = f
}

// Forget drops what is remembered of a pod.
func (p *Puller) Forget(uid string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.lastFail {
		if len(k) > len(uid) && k[:len(uid)] == uid {
			delete(p.lastFail, k)
		}
	}
}

func policyOf(c *corev1.Container) corev1.PullPolicy {
	if c.ImagePullPolicy == "" {
		return corev1.PullIfNotPresent
	}
	return c.ImagePullPolicy
}

// withDefaultTag appends :latest to a name with neither tag nor digest. The name
// is not expanded: what docker.io means is the runtime's affair.
func withDefaultTag(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	if _, tagged := named.(reference.Tagged); tagged {
		return image, nil
	}
	if _, digested := named.(reference.Digested); digested {
		return image, nil
	}
	return image + ":latest", nil
}
