package flow

import (
	"slices"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/periplus/periplus/apiserver/request"
)

// Limits are all that there is without priority and fairness: so many requests that read,
// and so many that write, at a time; 0 is any number. Nobody waits.
type Limits struct {
	reading, writing atomic.Int64
	Reading, Writing int
}

// Enter lets a request in, or reports that there are too many. Administrators always
// get in.
func (l *Limits) Enter(s *request.State) (leave func(), ok bool) {
	n, most := &l.reading, l.Reading
	switch s.Info.Verb {
	case "get", "list", "watch", "head", "options":
	default:
		n, most = &l.writing, l.Writing
	}
	leave = func() { n.Add(-1) }
	if n.Add(1) <= int64(most) || most == 0 || slices.Contains(s.User.GetGroups(), user.SystemPrivilegedGroup) {
		return leave, true
	}
	leave()
	return nil, false
}
