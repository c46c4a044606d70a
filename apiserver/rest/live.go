package rest

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/periplus/periplus/apiserver/cacher"
)

// live answers get and list of a kind that is not stored.
func (e *endpoint) live(w http.ResponseWriter, r *http.Request, c *call) error {
	source := e.objects.Resource.Live
	if c.info.Verb == "get" {
		obj, err := source.Get(r.Context(), c.info.Namespace, c.info.Name)
		if err != nil {
			return err
		}
		return e.writeObject(w, r, c, http.StatusOK, unstored(obj))
	}
	q, err := e.listQuery(r, c)
	if err != nil {
		return err
	}
	objects, err := source.List(r.Context(), c.info.Namespace, q.labels, q.fields)
	if err != nil {
		return err
	}
	if r.Context().Err() != nil {
		return apierrors.NewTimeoutError("request did not complete within requested timeout", 0)
	}
	p := &page{items: make([]*cacher.Object, 0, len(objects))}
	for _, obj := range objects {
		if o := unstored(obj); q.matches(e, o) {
			p.items = append(p.items, o)
		}
	}
	return e.writeList(w, r, c, p)
}

// unstored makes an object look as if it came from the cache.
func unstored(obj runtime.Object) *cacher.Object {
	return &cacher.Object{Obj: obj, Meta: obj.(metav1.ObjectMetaAccessor).GetObjectMeta()}
}
