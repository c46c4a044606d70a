package http1

import (
	"strings"

	"github.com/periplus/periplus/l7"
)

// framing is what the fields of a head say about its body and its connection.
type framing struct {
	host       string
	hosts      int
	length     int64 // -1: none
	chunked    bool
	close      bool
	keepAlive  bool
	upgrade    string
	expect     bool
	teTrailers bool
	options    []string // further names in Connection: their fields are removed
	trailers   bool     // a Trailer field
}

// parseFields reads the lines of s, which ends with an empty line, into h. Fields of
// the connection and of framing go into f.
func parseFields(s string, h l7.Header, f *framing) (l7.Header, error) {
	f.length = -1
	connectionUpgrade, upgrade := false, ""
	for s != "\r\n" {
		end := strings.IndexByte(s, '\n')
		if end < 1 || s[end-1] != '\r' {
			return h, errBareLF
		}
		line := s[:end-1]
		s = s[end+1:]
		if line[0] == ' ' || line[0] == '\t' {
			return h, errFold
		}
		colon := strings.IndexByte(line, ':')
		if colon < 1 {
			return h, errFieldName
		}
		name := line[:colon]
		for i := 0; i < len(name); i++ {
			if !tokenTable[name[i]] {
				return h, errFieldName
			}
		}
		value := trimOWS(line[colon+1:])
		for i := 0; i < len(value); i++ {
			if c := value[i]; c < 0x20 && c != '\t' || c == 0x7f {
				if c == '\r' {
					return h, errBareCR
				}
				return h, errFieldValue
			}
		}
		// The length of the name decides which comparison is worth making.
		switch len(name) {
		case 2:
			if strings.EqualFold(name, "te") {
				f.teTrailers = f.teTrailers || hasToken(value, "trailers")
				continue
			}
		case 4:
			if strings.EqualFold(name, "host") {
				f.host, f.hosts = value, f.hosts+1
				continue
			}
		case 6:
			if strings.EqualFold(name, "expect") {
				if strings.EqualFold(value, "100-continue") {
					f.expect = true
					continue
				}
			}
		case 7:
			if strings.EqualFold(name, "upgrade") {
				upgrade = value
				continue
			}
			if strings.EqualFold(name, "trailer") {
				f.trailers = true
			}
		case 10:
			if strings.EqualFold(name, "connection") {
				if f.connection(value) {
					connectionUpgrade = true
				}
				continue
			}
			if strings.EqualFold(name, "keep-alive") {
				continue
			}
		case 14:
			if strings.EqualFold(name, "content-length") {
				if err := f.contentLength(value); err != nil {
					return h, err
				}
				continue
			}
		case 16:
			if strings.EqualFold(name, "proxy-connection") {
				continue
			}
		case 17:
			if strings.EqualFold(name, "transfer-encoding") {
				if f.chunked || !strings.EqualFold(value, "chunked") {
					return h, errCoding
				}
				f.chunked = true
				continue
			}
		}
		h = append(h, l7.Field{Name: name, Value: value})
	}
	if f.chunked && f.length >= 0 {
		return h, errBothFramings
	}
	if connectionUpgrade {
		f.upgrade = upgrade
	}
	for _, o := range f.options {
		h.Del(o)
	}
	return h, nil
}

// connection reads a Connection field and reports whether it has "upgrade".
func (f *framing) connection(value string) bool {
	upgrade := false
	for rest := value; rest != ""; {
		var t string
		t, rest, _ = strings.Cut(rest, ",")
		switch t = trimOWS(t); {
		case t == "":
		case strings.EqualFold(t, "close"):
			f.close = true
		case strings.EqualFold(t, "keep-alive"):
			f.keepAlive = true
		case strings.EqualFold(t, "upgrade"):
			upgrade = true
		case strings.EqualFold(t, "te"):
		default:
			f.options = append(f.options, t)
		}
	}
	return upgrade
}

// contentLength takes only digits, and the same number if it comes twice.
func (f *framing) contentLength(value string) error {
	if value == "" || len(value) > 18 {
		return errLength
	}
	var n int64
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c < '0' || c > '9' {
			return errLength
		}
		n = n*10 + int64(c-'0')
	}
	if f.length >= 0 && f.length != n {
		return errLengths
	}
	f.length = n
	return nil
}

func trimOWS(s string) string {
	for s != "" && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

func hasToken(list, token string) bool {
	for rest := list; rest != ""; {
		var t string
		t, rest, _ = strings.Cut(rest, ",")
		if strings.EqualFold(trimOWS(t), token) {
			return true
		}
	}
	return false
}

// tokenTable are the characters of a token (RFC 9110 §5.6.2).
var tokenTable = func() (t [256]bool) {
	for c := '0'; c <= '9'; c++ {
		t[c] = true
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = true, true
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()

// ValidName reports whether s can be the name of a field.
func ValidName(s string) bool {
	for i := 0; i < len(s); i++ {
		if !tokenTable[s[i]] {
			return false
		}
	}
	return s != ""
}

// ValidValue reports whether s can be the value of a field.
func ValidValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
