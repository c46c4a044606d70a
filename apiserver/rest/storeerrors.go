package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/periplus/periplus/apiserver/request"
	"github.com/periplus/periplus/store"
)

// storeError turns an error of the store into an API error; conflicts pass as they are.
func storeError(err error) error {
	var conflict *store.ConflictError
	var api apierrors.APIStatus
	switch {
	case errors.As(err, &conflict), errors.As(err, &api):
		return err
	case errors.Is(err, store.ErrUnavailable):
		return apierrors.NewServiceUnavailable(fmt.Sprintf(
			"%v. Whether a change that was asked for was made is not known: look at the object before you try again. "+
				"/readyz says when the store (etcd) is back; until then reads with resourceVersion=0 show what was known before", err))
	case errors.Is(err, store.ErrTooLarge):
		// Upstream passes on what etcd says.
		return plain(errors.New("etcdserver: request is too large"))
	case errors.Is(err, context.DeadlineExceeded):
		return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
	case errors.Is(err, context.Canceled):
		return apierrors.NewTimeoutError("the request was cancelled", 0)
	}
	return apierrors.NewInternalError(err)
}

// plain makes an error of no kind of one that is none of the API's, as upstream
// passes on what a library says: 500 without a reason.
func plain(err error) error {
	var api apierrors.APIStatus
	if errors.As(err, &api) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

// howFresh warns the client of a read that the cache answers while the store does not.
func (e *endpoint) howFresh(ctx context.Context) {
	if e.server.config.Silent == nil {
		return
	}
	if s := e.server.config.Silent(); s != nil {
		request.Warn(ctx, fmt.Sprintf("the store (etcd) has not answered since %s: this is the state of revision %d, which may be old",
			s.Since.UTC().Format(time.RFC3339), e.objects.set.Rev()))
	}
}
