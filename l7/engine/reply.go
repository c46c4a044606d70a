package engine

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/periplus/periplus/l7"
	"github.com/periplus/periplus/l7/upstream"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// local makes the proxy's own response.
func local(x *l7.Exchange, r *l7.Reply) {
	out := &x.Response
	out.Local, out.Trailer = true, nil
	out.Header = append(out.Header[:0], r.Header...)
	x.Flags |= r.Flag
	if r.Details != "" {
		x.Details = r.Details
	}
	if x.Request.GRPC() {
		localGRPC(out, r)
		return
	}
	out.Status = r.Status
	out.ContentLength = int64(len(r.Body))
	out.Body = nil
	if r.Body != "" {
		out.Body = strings.NewReader(r.Body)
		if !out.Header.Has("content-type") {
			out.Header.Add("Content-Type", "text/plain")
		}
	}
}

// localGRPC answers with headers alone ("Trailers-Only", gRPC over HTTP/2).
func localGRPC(out *l7.Response, r *l7.Reply) {
	status := r.GRPCStatus
	if status == 0 {
		status = grpcStatus(r.Status)
	}
	out.Status, out.ContentLength, out.Body = 200, 0, nil
	out.Header.Set("Content-Type", "application/grpc")
	out.Header.Set("Grpc-Status", strconv.Itoa(status))
	if r.Body != "" {
		out.Header.Set("Grpc-Message", url.PathEscape(r.Body))
	}
}

// grpcStatus maps a status of HTTP (gRPC, doc/http-grpc-status-mapping.md).
func grpcStatus(http int) int {
	switch http {
	case 200:
		return 0
	case 400:
		return 13 // INTERNAL
	case 401:
		return 16 // UNAUTHENTICATED
	case 403:
		return 7 // PERMISSION_DENIED
	case 404:
		return 12 // UNIMPLEMENTED
	case 429, 502, 503, 504:
		return 14 // UNAVAILABLE
	default:
		return 2 // UNKNOWN
	}
}

func flagOf(k upstream.Kind) l7.Flag {
	switch k {
	case upstream.NoEndpoint:
		return l7.FlagNoHealthy
	case upstream.Overflow:
		return l7.FlagOverflow
	case upstream.Connect:
		return l7.FlagConnectFailure
	case upstream.Timeout:
		return l7.FlagUpstreamTimeout
	case upstream.Protocol:
		return l7.FlagUpstreamProtocol
	case upstream.Client:
		return l7.FlagDownstreamDisconnect
	default:
		return l7.FlagUpstreamReset
	}
}

// failed is the reply for a request that no endpoint has answered.
func failed(f *upstream.Failure) *l7.Reply {
	r := &l7.Reply{Status: 503, Flag: flagOf(f.Kind), Details: f.Kind.String()}
	switch f.Kind {
	case upstream.NoEndpoint:
		r.Body = "no healthy upstream"
	case upstream.Overflow:
		r.Body = "upstream connect error or disconnect/reset before headers. reset reason: overflow"
		r.Header = l7.Header{{Name: "X-Envoy-Overloaded", Value: "true"}}
	case upstream.Connect:
		r.Body = "upstream connect error or disconnect/reset before headers. reset reason: connection failure"
	case upstream.Timeout:
		r.Status, r.Body = 504, "upstream request timeout"
	case upstream.Protocol:
		r.Status, r.Body = 502, "upstream connect error or disconnect/reset before headers. reset reason: protocol error"
	case upstream.Client:
		r.Status, r.Body = 400, "the request's body broke off"
	default:
		r.Body = "upstream connect error or disconnect/reset before headers. reset reason: connection termination"
	}
	return r
}
