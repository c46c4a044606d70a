package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/periplus/periplus/containers/image"
)

// SocketName is the socket's usual name, in the directory of the CRI's.
const SocketName = "images.sock"

// Images is what is served. image.Store has it.
type Images interface {
	Import(ctx context.Context, r io.Reader, o image.ImportOptions) ([]*image.Image, error)
	Export(ctx context.Context, w io.Writer, refs ...string) error
}

// Imported is an image in the answer to an import.
type Imported struct {
	ID          string   `json:"id"`
	RepoTags    []string `json:"repoTags,omitempty"`
	RepoDigests []string `json:"repoDigests,omitempty"`
	Size        int64    `json:"size"`
}

type importAnswer struct {
	Images []Imported `json:"images"`
}

type errorAnswer struct {
	Error string `json:"error"`
}

// Handler serves images.
func Handler(images Images) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/images/import", func(w http.ResponseWriter, r *http.Request) {
		got, err := images.Import(r.Context(), r.Body, image.ImportOptions{Name: r.URL.Query().Get("name")})
		if err != nil {
			refuse(w, err)
			return
		}
		var a importAnswer
		for _, i := range got {
			a.Images = append(a.Images, Imported{i.ID, i.RepoTags, i.RepoDigests, i.Size})
		}
		answer(w, http.StatusOK, a)
	})
	mux.HandleFunc("GET /v1/images/export", func(w http.ResponseWriter, r *http.Request) {
		refs := r.URL.Query()["ref"]
		if len(refs) == 0 {
			refuse(w, errors.New("name at least one image"))
			return
		}
		out := &lateWriter{w: w}
		err := images.Export(r.Context(), out, refs...)
		switch {
		case err != nil && out.begun:
			panic(http.ErrAbortHandler) // the client must not take half for whole
		case err != nil:
			refuse(w, err)
		}
	})
	return mux
}

// lateWriter says that an archive follows when the first byte does.
type lateWriter struct {
	w     http.ResponseWriter
	begun bool
}

func (l *lateWriter) Write(p []byte) (int, error) {
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "application/x-tar")
	}
	return l.w.Write(p)
}

func refuse(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	switch {
	case errors.Is(err, image.ErrNotFound):
		code = http.StatusNotFound
	case errors.Is(err, image.ErrInvalidReference), errors.Is(err, image.ErrNotImageArchive):
		code = http.StatusBadRequest
	}
	answer(w, code, errorAnswer{err.Error()})
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // nobody is left to tell
}
