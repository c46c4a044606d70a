package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/periplus/periplus/mesh"
	"github.com/periplus/periplus/mesh/config"
)

const (
	// Path is where the webhook is served.
	Path = "/validate"
	// ConfigurationName is that of the ValidatingWebhookConfiguration.
	ConfigurationName = "istio-validator-" + mesh.RootNamespace
	maxReview         = 8 << 20
)

// Handler is the webhook.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		err := json.NewDecoder(io.LimitReader(r.Body, maxReview)).Decode(&review)
		if err != nil || review.Request == nil {
			http.Error(w, fmt.Sprintf("AdmissionReview cannot be read: %v", err), http.StatusBadRequest)
			return
		}
		response := &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if raw := review.Request.Object.Raw; len(raw) > 0 {
			if err := object(raw); err != nil {
				response.Allowed = false
				response.Result = &metav1.Status{Message: err.Error(), Reason: metav1.StatusReasonInvalid, Code: http.StatusBadRequest}
			}
		}
		review.Request, review.Response = nil, response
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(&review) // the caller has gone
	})
}

// object checks one object.
func object(raw []byte) error {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return fmt.Errorf("cannot decode configuration: %w", err)
	}
	if err := Object(u); err != nil {
		return fmt.Errorf("configuration is invalid: %w", err)
	}
	return nil
}

// Object checks an object of a kind that is known; others are right.
func Object(u *unstructured.Unstructured) error {
	switch u.GetKind() {
	case "VirtualService":
		v, err := config.NewVirtualService(u)
		if err != nil {
			return err
		}
		return VirtualService(v)
	case "DestinationRule":
		d, err := config.NewDestinationRule(u)
		if err != nil {
			return err
		}
		return DestinationRule(d)
	case "PeerAuthentication":
		p, err := config.NewPeerAuthentication(u)
		if err != nil {
			return err
		}
		return PeerAuthentication(p)
	case "AuthorizationPolicy":
		a, err := config.NewAuthorizationPolicy(u)
		if err != nil {
			return err
		}
		return AuthorizationPolicy(a)
	}
	return nil
}

// Configuration tells API servers to ask before they keep such an object.
func Configuration(root []byte) *admissionregistrationv1.ValidatingWebhookConfiguration {
	url := "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(mesh.WebhookPort)) + Path
	fail, none, equivalent, scope, timeout := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Equivalent, admissionregistrationv1.NamespacedScope, int32(10)
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ConfigurationName, Labels: map[string]string{"app.kubernetes.io/managed-by": "periplus"}},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "validation.istio.io",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: root},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{"networking.istio.io", "security.istio.io"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: &scope,
				},
			}},
			FailurePolicy: &fail, MatchPolicy: &equivalent, SideEffects: &none, TimeoutSeconds: &timeout, AdmissionReviewVersions: []string{"v1"},
		}},
	}
}

// mistakes collects errors; their texts are joined as Istio joins them.
type mistakes struct{ errs []error }

func (m *mistakes) addf(format string, args ...any) {
	m.errs = append(m.errs, fmt.Errorf(format, args...))
}

func (m *mistakes) add(err error) {
	if err != nil {
		m.errs = append(m.errs, err)
	}
}

func (m *mistakes) err() error {
	switch len(m.errs) {
	case 0:
		return nil
	case 1:
		return m.errs[0]
	}
	var text strings.Builder
	text.WriteString(strconv.Itoa(len(m.errs)) + " errors occurred:\n")
	for _, e := range m.errs {
		text.WriteString("\t* " + e.Error() + "\n")
	}
	return errors.New(text.String() + "\n")
}
