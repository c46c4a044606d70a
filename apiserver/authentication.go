package apiserver

import (
	"context"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/authn"
	"github.com/periplus/periplus/apiserver/authn/all"
	"github.com/periplus/periplus/apiserver/authn/requestheader"
	"github.com/periplus/periplus/apiserver/authn/serviceaccount"
	"github.com/periplus/periplus/apiserver/registry"
	"github.com/periplus/periplus/apiserver/rest"
	"github.com/periplus/periplus/base"
)

// authentication puts together how senders are known.
func (s *Server) authentication() (*all.Authentication, error) {
	c := &s.config
	o := c.Authentication
	if t := &c.Trust; len(o.RequestHeader.CA) == 0 && len(t.ProxyCA) > 0 {
		o.RequestHeader = requestheader.Config{
			CA: t.ProxyCA, Names: t.ProxyNames, Users: t.UserHeaders, UIDs: t.UIDHeaders, Groups: t.GroupHeaders, ExtraPrefixes: t.ExtraPrefixes,
		}
	}
	return all.New(all.Config{Options: o, Issuer: c.Issuer, Signer: c.ServiceAccountKey, ClientCAs: c.ClientCAs, Objects: s.rest, Metrics: s.measure, Used: s.noteUse, Log: c.Log})
}

// Authentication is how senders are known, for those who reload parts of it.
func (s *Server) Authentication() *all.Authentication { return s.authn }

// refuse answers a request whose sender is not known.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.config.Log.Debug("request is not authenticated", base.KeyError, err, base.KeyPath, r.URL.Path)
	var slow *authn.SlowDownError
	if errors.As(err, &slow) {
		s.rest.Codecs().WriteError(w, r, apierrors.NewTooManyRequests(slow.Error(), 1))
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="kubernetes"`)
	s.rest.Codecs().WriteError(w, r, apierrors.NewUnauthorized("Unauthorized"))
}

// noteUse writes on which day the token in a Secret was last used. A request does not
// wait for it, nor fail with it.
func (s *Server) noteUse(ctx context.Context, secret *corev1.Secret, day string) {
	objects := s.rest.Objects(corev1.SchemeGroupVersion.WithResource("secrets"))
	_, _, err := objects.Update(context.WithoutCancel(ctx), secret.Namespace, secret.Name, func(current runtime.Object) (runtime.Object, error) {
		out := current.DeepCopyObject().(*corev1.Secret)
		if out.UID != secret.UID {
			return nil, errors.New("the secret is another one now")
		}
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		out.Labels[serviceaccount.LastUsed] = day
		return out, objects.Note(current, out, "")
	}, rest.Write{Strategy: registry.Funcs[*corev1.Secret]{}, Internal: true})
	if err != nil {
		s.config.Log.Warn("use of a token in a secret could not be noted", base.KeyName, secret.Name, base.KeyError, err)
	}
}
