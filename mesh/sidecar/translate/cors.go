package translate

import (
	"strconv"
	"strings"
	"time"

	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/periplus/periplus/l7/filter/cors"
)

func corsFilter(body *anypb.Any) (*cors.Filter, error) {
	m := &corsv3.CorsPolicy{}
	if err := unmarshal(body, m); err != nil {
		return nil, err
	}
	out := &cors.Filter{
		Methods: split(m.GetAllowMethods()), Headers: split(m.GetAllowHeaders()), Expose: split(m.GetExposeHeaders()),
		Credentials: m.GetAllowCredentials().GetValue(),
	}
	for _, o := range m.GetAllowOriginStringMatch() {
		match, err := stringMatch(o)
		if err != nil {
			return nil, err
		}
		out.Origins = append(out.Origins, match)
	}
	if seconds, err := strconv.Atoi(m.GetMaxAge()); err == nil {
		out.MaxAge = time.Duration(seconds) * time.Second
	}
	return out, nil
}

func split(s string) []string {
	var out []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}
