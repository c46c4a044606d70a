package imagepolicywebhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"

	"github.com/periplus/periplus/apiserver/admission"
	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/base"
)

const (
	// Name is the plug-in's.
	Name = "ImagePolicyWebhook"
	// auditPrefix is that of its audit annotations.
	auditPrefix = "imagepolicywebhook.image-policy.k8s.io/"
	// own are annotations of pods that the program is shown.
	own = ".image-policy.k8s.io/"
	// failedOpen marks pods that were let in because nobody answered.
	failedOpen = "alpha.image-policy.k8s.io/failed-open"
	// remembered is how many answers are kept.
	remembered = 1024
)

type plugin struct {
	config  *config
	program *webhook.GenericWebhook
	answers *cache.LRUExpireCache
}

var _ admission.Validator = (*plugin)(nil)

// New returns the plug-in. data is its configuration as YAML.
func New(data []byte) (admission.Plugin, error) {
	c, err := load(data)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	to, err := webhook.LoadKubeconfig(c.KubeConfigFile, nil)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	scheme := runtime.NewScheme()
	if err := imagepolicyv1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	program, err := webhook.NewGenericWebhook(scheme, serializer.NewCodecFactory(scheme), to,
		[]schema.GroupVersion{imagepolicyv1alpha1.SchemeGroupVersion}, webhook.DefaultRetryBackoffWithInitialDelay(c.RetryBackoff))
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", Name, err)
	}
	return &plugin{c, program, cache.NewLRUExpireCache(remembered)}, nil
}

func (*plugin) Name() string { return Name }

// Validate implements admission.Validator.
func (p *plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	r := &imagepolicyv1alpha1.ImageReview{Spec: imagepolicyv1alpha1.ImageReviewSpec{Namespace: a.Namespace}}
	switch a.Subresource {
	case "":
		for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range list {
				r.Spec.Containers = append(r.Spec.Containers, imagepolicyv1alpha1.ImageReviewContainerSpec{Image: list[i].Image})
			}
		}
	case "ephemeralcontainers":
		for i := range pod.Spec.EphemeralContainers {
			r.Spec.Containers = append(r.Spec.Containers, imagepolicyv1alpha1.ImageReviewContainerSpec{Image: pod.Spec.EphemeralContainers[i].Image})
		}
	default:
		return nil
	}
	for key, value := range pod.Annotations {
		if strings.Contains(key, own) {
			if r.Spec.Annotations == nil {
				r.Spec.Annotations = map[string]string{}
			}
			r.Spec.Annotations[key] = value
		}
	}
	said, err := p.ask(ctx, r)
	if err != nil {
		return p.unanswered(ctx, pod, err)
	}
	for key, value := range said.AuditAnnotations {
		request.Annotate(ctx, auditPrefix+key, value)
	}
	switch {
	case said.Allowed:
		return nil
	case said.Reason != "":
		return fmt.Errorf("image policy webhook backend denied one or more images: %s", said.Reason)
	}
	return errors.New("one or more images rejected by webhook backend")
}

// ask returns the program's answer, or what it said a while ago.
func (p *plugin) ask(ctx context.Context, r *imagepolicyv1alpha1.ImageReview) (*imagepolicyv1alpha1.ImageReviewStatus, error) {
	key, err := json.Marshal(r.Spec)
	if err != nil {
		return nil, err
	}
	if known, ok := p.answers.Get(string(key)); ok {
		return known.(*imagepolicyv1alpha1.ImageReviewStatus), nil
	}
	result := p.program.WithExponentialBackoff(ctx, func() rest.Result { return p.program.RestClient.Post().Body(r).Do(ctx) })
	if err := result.Error(); err != nil {
		return nil, err
	}
	got, status := &imagepolicyv1alpha1.ImageReview{}, 0
	if result.StatusCode(&status); status < 200 || status > 299 {
		return nil, fmt.Errorf("Error contacting webhook: %d", status) //nolint:staticcheck // upstream's words
	}
	if err := result.Into(got); err != nil {
		return nil, err
	}
	p.answers.Add(string(key), &got.Status, p.holds(got.Status.Allowed))
	return &got.Status, nil
}

func (p *plugin) holds(allowed bool) time.Duration {
	if allowed {
		return p.config.AllowTTL
	}
	return p.config.DenyTTL
}

// unanswered decides when nobody has.
func (p *plugin) unanswered(ctx context.Context, pod *corev1.Pod, err error) error {
	if !p.config.DefaultAllow {
		return err
	}
	slog.Default().Warn("image policy webhook could not be asked: the images are allowed", base.KeyComponent, "apiserver", base.KeyName, pod.Name, base.KeyError, err)
	request.Annotate(ctx, auditPrefix+"failed-open", "true")
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[failedOpen] = "true"
	return nil
}
