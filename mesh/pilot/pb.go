package pilot

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Short words for the messages that everything is made of.

func u32(n int) *wrapperspb.UInt32Value                    { return wrapperspb.UInt32(uint32(n)) }
func yes(b bool) *wrapperspb.BoolValue                     { return wrapperspb.Bool(b) }
func text(s string) *structpb.Value                        { return structpb.NewStringValue(s) }
func fields(f map[string]*structpb.Value) *structpb.Struct { return &structpb.Struct{Fields: f} }

func metadata(key string, f map[string]*structpb.Value) *core.Metadata {
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{key: fields(f)}}
}

func socket(address string, port int) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: address, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}

// ads says that a resource comes over the same stream.
func ads() *core.ConfigSource {
	return &core.ConfigSource{ResourceApiVersion: core.ApiVersion_V3, ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}}}
}

func exact(s string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: s}}
}

func prefix(s string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: s}}
}

func suffix(s string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Suffix{Suffix: s}}
}

func regex(s string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: s}}}
}

// fraction is a percentage in millionths.
func fraction(percent float64) *typev3.FractionalPercent {
	return &typev3.FractionalPercent{Numerator: uint32(percent*10000 + 0.5), Denominator: typev3.FractionalPercent_MILLION}
}
