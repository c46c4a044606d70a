package checkpoint

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// refused reports whether an error is an answer of the API about the request. What
// says that it is not up, too busy, or does not know us (an expired certificate) is no
// answer: as good as silence.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && answers(int(status.Status().Code))
}

// answers says the same of a status code.
func answers(code int) bool {
	return code >= 200 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusUnauthorized
}
