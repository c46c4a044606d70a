package rest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/periplus/periplus/apiserver/cacher"
	"github.com/periplus/periplus/store"
)

// A query is what a list or watch asks for.
type query struct {
	metav1.ListOptions
	namespace string
	labels    labels.Selector
	fields    fields.Selector
	name      string // from metadata.name=…, "" for all
}

// listQuery reads the list options of a request.
func (e *endpoint) listQuery(r *http.Request, c *call) (*query, error) {
	q := &query{namespace: c.info.Namespace, labels: labels.Everything(), fields: fields.Everything()}
	if r.URL.RawQuery != "" {
		if err := decodeOptions(r.URL.Query(), &q.ListOptions); err != nil {
			return nil, err
		}
	}
	if q.LabelSelector != "" {
		s, err := labels.Parse(q.LabelSelector)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
		}
		q.labels = s
	}
	if q.FieldSelector != "" {
		s, err := fields.ParseSelector(q.FieldSelector)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if err := e.checkFields(s); err != nil {
			return nil, err
		}
		q.fields = s
		q.name, _ = s.RequiresExactMatch("metadata.name")
	}
	if c.info.Name != "" { // a watch of one object by its path
		q.name = c.info.Name
		q.fields = fields.AndSelectors(q.fields, fields.OneTermEqualSelector("metadata.name", c.info.Name))
	}
	return q, checkOptions(&q.ListOptions, c.info.Verb == "watch")
}

func (e *endpoint) checkFields(s fields.Selector) error {
	for _, req := range s.Requirements() {
		known := req.Field == "metadata.name" || req.Field == "metadata.namespace" && e.objects.Resource.Namespaced
		for _, f := range e.view.SelectableFields {
			known = known || f == req.Field
		}
		if !known {
			return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", req.Field))
		}
	}
	return nil
}

func checkOptions(o *metav1.ListOptions, isWatch bool) error {
	return invalidOptions("ListOptions", validation.ValidateListOptions(&internalversion.ListOptions{
		Watch: isWatch, ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
		Continue: o.Continue, SendInitialEvents: o.SendInitialEvents,
	}, true))
}

// prefix is where the query's objects begin in the store; start the first key.
func (e *endpoint) prefix(q *query) (prefix, start string) {
	prefix = cacher.Root + e.objects.Resource.Prefix() + "/"
	if e.objects.Resource.Namespaced && q.namespace != "" {
		prefix += q.namespace + "/"
	}
	return prefix, prefix
}

// matches reports whether obj is asked for. Keys have selected the namespace already.
func (q *query) matches(e *endpoint, obj *cacher.Object) bool {
	if q.name != "" && obj.Meta.GetName() != q.name {
		return false
	}
	if q.namespace != "" && e.objects.Resource.Namespaced && obj.Meta.GetNamespace() != q.namespace {
		return false
	}
	if !q.labels.Empty() && !q.labels.Matches(labels.Set(obj.Meta.GetLabels())) {
		return false
	}
	return q.fields.Empty() || q.fields.Matches(e.fieldsOf(obj))
}

func (e *endpoint) fieldsOf(obj *cacher.Object) fields.Set {
	set := fields.Set{}
	if f := e.view.Fields; f != nil {
		maps.Copy(set, f(obj.Obj))
	}
	set["metadata.name"] = obj.Meta.GetName()
	if e.objects.Resource.Namespaced {
		set["metadata.namespace"] = obj.Meta.GetNamespace()
	}
	return set
}

// A page is the answer to a list.
type page struct {
	items     []*cacher.Object
	rev       int64
	cont      string
	remaining *int64
	looked    int // objects that were compared with what is asked for
}

// collect reads a list: from the cache, or from the store's past for exact
// revisions and later pages.
func (e *endpoint) collect(ctx context.Context, q *query) (*page, error) {
	if prefix, _ := e.prefix(q); e.objects.Cache != nil {
		if err := e.server.config.Sealed.check(prefix); err != nil {
			return nil, err
		}
	}
	if q.Continue != "" {
		rev, start, err := decodeContinue(q.Continue)
		if err != nil {
			return nil, err
		}
		if q.ResourceVersion != "" && q.ResourceVersion != "0" {
			return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
		}
		return e.past(ctx, q, rev, start)
	}
	if q.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		rev, err := parseRevision(q.ResourceVersion)
		if err != nil {
			return nil, err
		}
		if err := e.fresh(ctx, q.ResourceVersion); err != nil { // not of the future
			return nil, err
		}
		_, start := e.prefix(q)
		return e.past(ctx, q, rev, start)
	}
	if err := e.fresh(ctx, q.ResourceVersion); err != nil {
		return nil, err
	}
	p := e.present(q)
	e.measureList(ctx, true, p.looked, len(p.items))
	return p, nil
}

// fresh waits until the cache is as new as a resourceVersion asks for: "" the
// newest, "0" anything, else not older than that.
func (e *endpoint) fresh(ctx context.Context, version string) error {
	set := e.objects.set
	switch version {
	case "":
		start := time.Now()
		err := set.Sync(ctx)
		e.measureFresh(ctx, true, err, start)
		if err != nil {
			return storeError(err)
		}
	case "0":
		e.howFresh(ctx)
	default:
		rev, err := parseRevision(version)
		if err != nil {
			return err
		}
		e.howFresh(ctx)
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		start := time.Now()
		err = set.Wait(limited, rev)
		e.measureFresh(ctx, false, err, start)
		if err != nil {
			if ctx.Err() != nil {
				return storeError(ctx.Err())
			}
			return tooLargeRevision(rev, set.Rev())
		}
	}
	return nil
}

func (e *endpoint) present(q *query) *page {
	rev := e.objects.set.Rev()
	snapshot := e.objects.Cache.Snapshot()
	p := &page{rev: max(rev, snapshot.Rev)}
	prefix, start := e.prefix(q)
	if q.name != "" && (q.namespace != "" || !e.objects.Resource.Namespaced) {
		snapshot.Each(prefix+q.name, "", func(o *cacher.Object) bool {
			p.looked++
			if o.Key == prefix+q.name && q.matches(e, o) {
				p.items = append(p.items, o)
			}
			return false
		})
		return p
	}
	if q.Limit <= 0 && q.labels.Empty() && q.fields.Empty() {
		p.items = make([]*cacher.Object, 0, snapshot.Len())
	}
	more := int64(0)
	plain := q.labels.Empty() && q.fields.Empty()
	snapshot.Each(prefix, start, func(o *cacher.Object) bool {
		p.looked++
		full := q.Limit > 0 && int64(len(p.items)) >= q.Limit
		switch {
		case full && plain:
			more++
		case !q.matches(e, o):
		case full:
			more++
			return false
		default:
			p.items = append(p.items, o)
		}
		return true
	})
	if more > 0 {
		last := p.items[len(p.items)-1].Key
		p.cont = encodeContinue(p.rev, last+"\x00")
		if plain {
			p.remaining = &more
		}
	}
	return p
}

// past reads a page at a revision from the store.
func (e *endpoint) past(ctx context.Context, q *query, rev int64, start string) (*page, error) {
	prefix, _ := e.prefix(q)
	if !strings.HasPrefix(start, prefix) {
		return nil, apierrors.NewBadRequest("continue key is not valid: it is outside of the listed collection")
	}
	p := &page{rev: rev}
	defer func() { e.measureList(ctx, false, p.looked, len(p.items)) }()
	for {
		list, err := e.objects.store.List(ctx, prefix, store.ListOptions{Start: start, Limit: q.Limit, Revision: rev})
		if errors.Is(err, store.ErrCompacted) {
			if q.Continue != "" {
				return nil, e.expiredContinue(start)
			}
			return nil, resourceExpired("The resourceVersion for the provided list is too old.")
		}
		if err != nil {
			return nil, storeError(err)
		}
		p.rev = list.Revision
		for i, entry := range list.Entries {
			obj, err := e.objects.Cache.Decode(entry)
			if err != nil {
				return nil, apierrors.NewInternalError(err)
			}
			p.looked++
			if !q.matches(e, obj) {
				continue
			}
			p.items = append(p.items, obj)
			if q.Limit > 0 && int64(len(p.items)) == q.Limit {
				if left := list.Remaining + int64(len(list.Entries)-i-1); left > 0 {
					p.cont = encodeContinue(p.rev, entry.Key+"\x00")
					if q.labels.Empty() && q.fields.Empty() {
						p.remaining = &left
					}
				}
				return p, nil
			}
		}
		if list.Remaining == 0 || len(list.Entries) == 0 {
			return p, nil
		}
		start, rev = list.Entries[len(list.Entries)-1].Key+"\x00", list.Revision
	}
}

// expiredContinue offers to go on with the newest state from the same key.
func (e *endpoint) expiredContinue(start string) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.Continue = encodeContinue(-1, start)
	return err
}

// continueToken is upstream's: clients may keep it, none looks inside.
type continueToken struct {
	APIVersion string `json:"v"`
	Revision   int64  `json:"rv"`
	Start      string `json:"start"`
}

func encodeContinue(rev int64, start string) string {
	b, err := json.Marshal(continueToken{"meta.k8s.io/v1", rev, start})
	if err != nil {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

func decodeContinue(s string) (rev int64, start string, err error) {
	var t continueToken
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil || t.APIVersion != "meta.k8s.io/v1" || t.Revision == 0 {
		return 0, "", apierrors.NewBadRequest("continue key is not valid")
	}
	return max(t.Revision, 0), t.Start, nil
}

func parseRevision(s string) (int64, error) {
	rev, err := strconv.ParseInt(s, 10, 64)
	if err != nil || rev < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version %q: must be a number that the server gave", s))
	}
	return rev, nil
}

// list serves GET of a collection.
func (e *endpoint) list(w http.ResponseWriter, r *http.Request, c *call) error {
	q, err := e.listQuery(r, c)
	if err != nil {
		return err
	}
	p, err := e.collect(r.Context(), q)
	if err != nil {
		return err
	}
	return e.writeList(w, r, c, p)
}
