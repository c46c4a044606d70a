package validate

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	networking "istio.io/api/networking/v1alpha3"
)

var (
	dnsLabel  = regexp.MustCompile(`^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$`)
	labelName = regexp.MustCompile(`^(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)
	labelText = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$`)
	fieldName = regexp.MustCompile("^[!#$%&'*+\\-.^_`|~0-9A-Za-z]+$")
)

func port(n uint32) error {
	if n < 1 || n > 65535 {
		return fmt.Errorf("port number %d must be in the range 1..65535", n)
	}
	return nil
}

func percent(n int32) error {
	if n < 0 || n > 100 {
		return fmt.Errorf("percentage %v is not in range 0..100", n)
	}
	return nil
}

func share(p *networking.Percent) error {
	if v := p.GetValue(); v < 0 || v > 100 || v > 0 && v < 0.0001 {
		return fmt.Errorf("percentage %v is neither 0.0, nor in range [0.0001, 100.0]", v)
	}
	return nil
}

func duration(d *durationpb.Duration) error {
	if d == nil {
		return nil
	}
	v := d.AsDuration()
	if v < time.Millisecond {
		return fmt.Errorf("duration must be greater than 1ms")
	}
	if v%time.Millisecond != 0 {
		return fmt.Errorf("only durations to ms precision are supported")
	}
	return nil
}

// wildcardHost checks a DNS name that may begin with "*".
func wildcardHost(host string) error {
	if host == "" {
		return fmt.Errorf("empty domain name not allowed")
	}
	if len(host) > 255 {
		return fmt.Errorf("domain name %q too long (max 255)", host)
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	for i, l := range labels {
		if i == 0 && strings.HasPrefix(l, "*") {
			if l != "*" && !dnsLabel.MatchString(strings.TrimPrefix(l[1:], "-")) {
				return fmt.Errorf("domain name %q invalid (label %q invalid)", host, l)
			}
			continue
		}
		if len(l) > 63 || !dnsLabel.MatchString(l) {
			return fmt.Errorf("domain name %q invalid (label %q invalid)", host, l)
		}
	}
	return nil
}

func subset(name string) error {
	if name == "" {
		return fmt.Errorf("subset name cannot be empty")
	}
	if len(name) > 63 || !dnsLabel.MatchString(name) {
		return fmt.Errorf("subset name is invalid: %s", name)
	}
	return nil
}

func labels(m map[string]string) error {
	var out mistakes
	for k, v := range m {
		if !labelName.MatchString(k) {
			out.addf("invalid tag key: %q", k)
		}
		if !labelText.MatchString(v) {
			out.addf("invalid tag value: %q", v)
		}
	}
	return out.err()
}

func header(name string) error {
	if name == "" {
		return fmt.Errorf("header name cannot be empty")
	}
	if !fieldName.MatchString(strings.TrimPrefix(name, ":")) {
		return fmt.Errorf("header name %s is not a valid header name", name)
	}
	return nil
}

func text(m *networking.StringMatch, where string) error {
	r, ok := m.GetMatchType().(*networking.StringMatch_Regex)
	if !ok {
		return nil
	}
	if r.Regex == "" {
		return fmt.Errorf("%q: regex string match should not be empty", where)
	}
	if _, err := regexp.Compile(r.Regex); err != nil {
		return fmt.Errorf("%q: %w; Istio uses RE2 style regex-based match (https://github.com/google/re2/wiki/Syntax)", where, err)
	}
	return nil
}
