package apiserver

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/audit"
	"github.com/periplus/periplus/apiserver/authz"
	"github.com/periplus/periplus/apiserver/request"
)

// impersonate lets a request act as the user that its Impersonate-* headers name,
// if its sender may impersonate each part of that identity:
//
//	Impersonate-User            users, or serviceaccounts for system:serviceaccount:<ns>:<name>
//	Impersonate-Group           groups
//	Impersonate-Uid             uids.authentication.k8s.io
//	Impersonate-Extra-<key>     userextras.authentication.k8s.io/<key>
//
// The headers go no further than this.
func (s *Server) impersonate(ctx context.Context, state *request.State, h http.Header) error {
	wanted, err := impersonated(h)
	if wanted == nil || err != nil {
		return err
	}
	for _, q := range impersonationQuestions(state.User, wanted) {
		if err := authz.Check(ctx, s.authz, q); err != nil {
			return err
		}
	}
	wanted.Groups = impersonatedGroups(wanted)
	state.Impersonator, state.User = state.User, wanted
	if rec, ok := state.Audit.(*audit.Record); ok {
		rec.Impersonated(wanted)
	}
	return nil
}

// impersonated takes the wanted identity out of the headers; nil when there is none.
func impersonated(h http.Header) (*user.DefaultInfo, error) {
	u := &user.DefaultInfo{Name: h.Get(authenticationv1.ImpersonateUserHeader), UID: h.Get(authenticationv1.ImpersonateUIDHeader)}
	u.Groups = slices.Clone(h.Values(authenticationv1.ImpersonateGroupHeader))
	h.Del(authenticationv1.ImpersonateUserHeader)
	h.Del(authenticationv1.ImpersonateUIDHeader)
	h.Del(authenticationv1.ImpersonateGroupHeader)
	for name, values := range h {
		key, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		delete(h, name)
		// Keys may hold what a header name may not, escaped.
		key = strings.ToLower(key)
		if unescaped, err := url.PathUnescape(key); err == nil {
			key = unescaped
		}
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = append(u.Extra[key], values...)
	}
	if u.Name != "" {
		return u, nil
	}
	if u.UID != "" || len(u.Groups) > 0 || len(u.Extra) > 0 {
		return nil, apierrors.NewInternalError(errors.New("groups, UID or extra fields are to be impersonated without a user"))
	}
	return nil, nil
}

// impersonationQuestions asks whether sender may take on each part of wanted.
func impersonationQuestions(sender user.Info, wanted *user.DefaultInfo) []*authz.Question {
	ask := func(resource, namespace, name string) *authz.Question {
		return &authz.Question{User: sender, Verb: "impersonate", IsResource: true, Version: "v1", Resource: resource, Namespace: namespace, Name: name}
	}
	var out []*authz.Question
	if namespace, name, err := serviceaccount.SplitUsername(wanted.Name); err == nil {
		out = append(out, ask("serviceaccounts", namespace, name))
	} else {
		out = append(out, ask("users", "", wanted.Name))
	}
	for _, g := range wanted.Groups {
		out = append(out, ask("groups", "", g))
	}
	inAuthentication := func(q *authz.Question) {
		q.Group = authenticationv1.GroupName
		out = append(out, q)
	}
	if wanted.UID != "" {
		inAuthentication(ask("uids", "", wanted.UID))
	}
	for key, values := range wanted.Extra {
		for _, v := range values {
			q := ask("userextras", "", v)
			q.Subresource = key
			inAuthentication(q)
		}
	}
	return out
}

// impersonatedGroups adds the groups that a user of this name always has.
func impersonatedGroups(u *user.DefaultInfo) []string {
	groups := u.Groups
	if namespace, _, err := serviceaccount.SplitUsername(u.Name); err == nil && len(groups) == 0 {
		groups = serviceaccount.MakeGroupNames(namespace)
	}
	if slices.Contains(groups, user.AllAuthenticated) || slices.Contains(groups, user.AllUnauthenticated) {
		return groups
	}
	if u.Name == user.Anonymous {
		return append(groups, user.AllUnauthenticated)
	}
	return append(groups, user.AllAuthenticated)
}
