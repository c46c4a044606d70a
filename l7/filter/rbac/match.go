package rbac

import (
	"net/netip"
	"strings"

	"github.com/periplus/periplus/l7"
)

// A Subject is what is decided about. Exchange is nil for connections.
type Subject struct {
	Connection *l7.Connection
	Exchange   *l7.Exchange
}

// A Matcher is a node of a policy's tree. Those that look at requests do not match
// connections.
type Matcher func(*Subject) bool

// Any matches everything.
func Any(*Subject) bool { return true }

// And matches if all do.
func And(m ...Matcher) Matcher {
	return func(s *Subject) bool {
		for _, f := range m {
			if !f(s) {
				return false
			}
		}
		return true
	}
}

// Or matches if one does.
func Or(m ...Matcher) Matcher {
	return func(s *Subject) bool {
		for _, f := range m {
			if f(s) {
				return true
			}
		}
		return false
	}
}

// Not matches if m does not.
func Not(m Matcher) Matcher { return func(s *Subject) bool { return !m(s) } }

// Path matches the path without its query.
func Path(m l7.StringMatch) Matcher {
	return func(s *Subject) bool { return s.Exchange != nil && m.Matches(s.Exchange.Request.PathOnly()) }
}

// Method matches the method.
func Method(m l7.StringMatch) Matcher {
	return func(s *Subject) bool { return s.Exchange != nil && m.Matches(s.Exchange.Request.Method) }
}

// Host matches the authority, with its port if it has one, in lower case.
func Host(m l7.StringMatch) Matcher {
	return func(s *Subject) bool {
		return s.Exchange != nil && m.Matches(strings.ToLower(s.Exchange.Request.Authority))
	}
}

// Header matches a field; the names of HTTP/2 (":method") too.
func Header(m l7.HeaderMatch) Matcher {
	switch {
	case strings.EqualFold(m.Name, ":path"):
		return func(s *Subject) bool {
			return s.Exchange != nil && m.Value.Matches(s.Exchange.Request.Path) != m.Invert
		}
	case strings.EqualFold(m.Name, ":method"):
		return func(s *Subject) bool {
			return s.Exchange != nil && m.Value.Matches(s.Exchange.Request.Method) != m.Invert
		}
	case strings.EqualFold(m.Name, ":authority"), strings.EqualFold(m.Name, "host"):
		return func(s *Subject) bool {
			return s.Exchange != nil && m.Value.Matches(s.Exchange.Request.Authority) != m.Invert
		}
	}
	return func(s *Subject) bool { return s.Exchange != nil && m.Matches(s.Exchange.Request.Header) }
}

// DestinationPort matches the port that the client has connected to.
func DestinationPort(port uint16) Matcher {
	return func(s *Subject) bool { return s.Connection.Destination.Port() == port }
}

// DestinationIP matches the address that the client has connected to.
func DestinationIP(prefixes ...netip.Prefix) Matcher {
	return func(s *Subject) bool { return contains(prefixes, s.Connection.Destination.Addr()) }
}

// SourceIP matches the address of the connection.
func SourceIP(prefixes ...netip.Prefix) Matcher {
	return func(s *Subject) bool { return contains(prefixes, s.Connection.Remote.Addr()) }
}

// RemoteIP matches the client's address, as far as it is known from trusted proxies.
func RemoteIP(prefixes ...netip.Prefix) Matcher {
	return func(s *Subject) bool {
		if s.Exchange != nil {
			return contains(prefixes, s.Exchange.Client)
		}
		return contains(prefixes, s.Connection.Remote.Addr())
	}
}

// Principal matches the peer's identity with its scheme: spiffe://….
func Principal(m l7.StringMatch) Matcher {
	return func(s *Subject) bool { return s.Connection.Peer != nil && m.Matches(s.Connection.Peer.URI) }
}

// Authenticated matches every peer with a certificate.
func Authenticated(s *Subject) bool { return s.Connection.Peer != nil }

// ServerName matches SNI.
func ServerName(m l7.StringMatch) Matcher {
	return func(s *Subject) bool { return m.Matches(s.Connection.ServerName) }
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}
