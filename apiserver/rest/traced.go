package rest

import (
	"net/http"

	"github.com/periplus/periplus/apiserver/spans"
)

// steps are what upstream calls the steps that answer verbs.
var steps = map[string]string{
	"get": "Get", "list": "List", "watch": "WatchList", "create": "Create", "update": "Update", "patch": "Patch", "delete": "Delete", "deletecollection": "Delete",
}

// traced is dispatch within a span of its own.
func (e *endpoint) traced(w http.ResponseWriter, r *http.Request, c *call) error {
	ctx, end := spans.Start(r.Context(), steps[c.info.Verb], "accept", r.Header.Get("Accept"), "user-agent", r.UserAgent(), "url", r.URL.Path, "protocol", r.Proto)
	err := e.dispatch(w, r.WithContext(ctx), c)
	end(err)
	return err
}
