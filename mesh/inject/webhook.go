package inject

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/base"
	"github.com/periplus/periplus/journey"
)

// maxReview bounds what is read of a request: an object is at most 3 MiB.
const maxReview = 8 << 20

// Path is where the webhook is served.
const Path = "/inject"

// Config is what the webhook needs.
type Config struct {
	Image Image
	// Prepare makes what sidecars of a namespace mount; it is called before each
	// injection and must be cheap once that is there.
	Prepare func(ctx context.Context, namespace string) error
	// Journey gets the step of each injection; nil: nobody does.
	Journey journey.Recorder
	Log     *slog.Logger
}

// NewHandler returns the webhook.
func NewHandler(c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		err := json.NewDecoder(io.LimitReader(r.Body, maxReview)).Decode(&review)
		if err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("AdmissionReview cannot be read: %v", err), http.StatusBadRequest)
			return
		}
		response := c.respond(r.Context(), review.Request)
		response.UID = review.Request.UID
		review.Request, review.Response = nil, response
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&review) // the caller has gone
	})
}

func (c *Config) respond(ctx context.Context, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	patch, err := c.patch(ctx, r)
	if err != nil {
		c.Log.Info("a pod was refused a sidecar", base.KeyNamespace, r.Namespace, base.KeyName, r.Name, base.KeyError, err)
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
	}
	if patch == nil {
		return &admissionv1.AdmissionResponse{Allowed: true}
	}
	typ := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{Allowed: true, Patch: patch, PatchType: &typ}
}

// operation is one of RFC 6902.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (c *Config) patch(ctx context.Context, r *admissionv1.AdmissionRequest) ([]byte, error) {
	start := time.Now()
	var p corev1.Pod
	if err := json.Unmarshal(r.Object.Raw, &p); err != nil {
		return nil, fmt.Errorf("pod cannot be read: %w", err)
	}
	if !wanted(&p) {
		return nil, nil
	}
	if err := addSidecar(&p, r.Namespace, c.Image); err != nil {
		return nil, err
	}
	if dry := r.DryRun != nil && *r.DryRun; c.Prepare != nil && !dry {
		if err := c.Prepare(ctx, r.Namespace); err != nil {
			return nil, fmt.Errorf("prepare namespace %s for the mesh: %w", r.Namespace, err)
		}
	}
	patch, err := json.Marshal([]operation{
		{"add", "/metadata/labels", p.Labels},
		{"add", "/metadata/annotations", p.Annotations},
		{"replace", "/spec", p.Spec},
	})
	if err == nil && c.Journey != nil && (r.DryRun == nil || !*r.DryRun) {
		meta := p.ObjectMeta
		meta.Namespace = r.Namespace
		if meta.Name == "" {
			meta.Name = r.Name
		}
		c.Journey.Record(journey.Step("mesh", "sidecar injected", "Pod", &meta, start).With("image", c.Image.Name))
	}
	return patch, err
}
