package openapi

import (
	"net/http"

	"github.com/periplus/periplus/apiserver/rest"
)

// Handler serves /openapi/v2, /openapi/v3 and /openapi/v3/….
type Handler struct {
	listings func() []rest.Listing
	version  string
}

// New returns a handler for the resources that listings returns.
func New(listings func() []rest.Listing, version string) *Handler {
	return &Handler{listings: listings, version: version}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "404 page not found", http.StatusNotFound)
}
