package headers

import "github.com/periplus/periplus/l7"

// A Change is what happens to a header, in the order of the fields.
type Change struct {
	Remove []string
	// Set replaces all fields of a name. "Host" sets the authority of a request.
	Set []l7.Field
	// Add appends.
	Add []l7.Field
	// Default sets what is missing.
	Default []l7.Field
}

// Filter changes headers. It implements l7.ResponseFilter.
type Filter struct{ request, response Change }

var _ l7.ResponseFilter = (*Filter)(nil)

// New returns a filter for requests and responses.
func New(request, response Change) *Filter { return &Filter{request, response} }

// Request implements l7.Filter.
func (f *Filter) Request(x *l7.Exchange) *l7.Reply {
	h := &x.Request.Header
	c := &f.request
	// Host is no field of a request here.
	for _, s := range c.Set {
		if isHost(s.Name) {
			x.Request.Authority = s.Value
		}
	}
	c.apply(h)
	return nil
}

// Response implements l7.ResponseFilter.
func (f *Filter) Response(x *l7.Exchange) { f.response.apply(&x.Response.Header) }

func (c *Change) apply(h *l7.Header) {
	for _, name := range c.Remove {
		h.Del(name)
	}
	for _, s := range c.Set {
		if !isHost(s.Name) {
			h.Set(s.Name, s.Value)
		}
	}
	for _, s := range c.Add {
		h.Add(s.Name, s.Value)
	}
	for _, s := range c.Default {
		if !h.Has(s.Name) {
			h.Add(s.Name, s.Value)
		}
	}
}

func isHost(name string) bool {
	return len(name) == 4 && (name[0]|0x20) == 'h' && (name[1]|0x20) == 'o' && (name[2]|0x20) == 's' && (name[3]|0x20) == 't'
}
