package telemetry

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/periplus/periplus/l7"
)

// An AccessLog writes a line for each request and connection, in Envoy's default
// format or as JSON.
type AccessLog struct {
	mu   sync.Mutex // guards out
	out  io.Writer
	json bool
}

// NewAccessLog returns a log; format is "text" or "json".
func NewAccessLog(out io.Writer, format string) *AccessLog {
	return &AccessLog{out: out, json: format == "json"}
}

func (a *AccessLog) write(line []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.out.Write(line) // nobody can be told
}

// entry has the names of Istio's JSON log.
type entry struct {
	Start         string `json:"start_time"`
	Method        string `json:"method,omitempty"`
	Path          string `json:"path,omitempty"`
	Protocol      string `json:"protocol"`
	Code          int    `json:"response_code"`
	Flags         string `json:"response_flags"`
	Details       string `json:"response_code_details,omitempty"`
	BytesReceived int64  `json:"bytes_received"`
	BytesSent     int64  `json:"bytes_sent"`
	Duration      int64  `json:"duration"`
	UpstreamTime  string `json:"upstream_service_time,omitempty"`
	ForwardedFor  string `json:"x_forwarded_for,omitempty"`
	UserAgent     string `json:"user_agent,omitempty"`
	RequestID     string `json:"request_id,omitempty"`
	Authority     string `json:"authority,omitempty"`
	UpstreamHost  string `json:"upstream_host,omitempty"`
	Cluster       string `json:"upstream_cluster,omitempty"`
	Local         string `json:"downstream_local_address"`
	Remote        string `json:"downstream_remote_address"`
	ServerName    string `json:"requested_server_name,omitempty"`
	Route         string `json:"route_name,omitempty"`
}

func (a *AccessLog) request(_ *Observer, x *l7.Exchange) {
	e := entry{
		Start: x.Start.UTC().Format("2006-01-02T15:04:05.000Z"), Method: x.Request.Method, Path: x.Request.Path, Protocol: x.Request.Proto,
		Code: x.Response.Status, Flags: x.Flags.String(), Details: x.Details, BytesReceived: x.BytesReceived, BytesSent: x.BytesSent,
		Duration: x.Duration.Milliseconds(), ForwardedFor: x.Request.Header.Get("x-forwarded-for"), UserAgent: x.Request.Header.Get("user-agent"),
		RequestID: x.Request.Header.Get("x-request-id"), Authority: x.Request.Authority, Cluster: x.ClusterName,
		Local: x.Connection.Destination.String(), Remote: x.Connection.Remote.String(), ServerName: x.Connection.ServerName,
	}
	if x.Endpoint != nil {
		e.UpstreamHost = x.Endpoint.Address
		e.UpstreamTime = strconv.FormatInt(x.UpstreamTime.Milliseconds(), 10)
	}
	if x.Route != nil {
		e.Route = x.Route.Name
	}
	a.entry(&e)
}

func (a *AccessLog) connection(_ *Observer, c *l7.Connection) {
	e := entry{
		Start: c.Opened.UTC().Format("2006-01-02T15:04:05.000Z"), Protocol: "-", Flags: c.Flags.String(), Details: c.Details,
		BytesReceived: c.BytesReceived, BytesSent: c.BytesSent, Duration: int64(c.Duration / time.Millisecond),
		Cluster: c.ClusterName, Local: c.Destination.String(), Remote: c.Remote.String(), ServerName: c.ServerName,
	}
	if c.Endpoint != nil {
		e.UpstreamHost = c.Endpoint.Address
	}
	a.entry(&e)
}

func (a *AccessLog) entry(e *entry) {
	if a.json {
		if b, err := json.Marshal(e); err == nil {
			a.write(append(b, '\n'))
		}
		return
	}
	request := "- - -"
	if e.Method != "" {
		request = e.Method + " " + e.Path + " " + e.Protocol
	}
	a.write(fmt.Appendf(nil, "[%s] %q %d %s %s - \"-\" %d %d %d %s %q %q %q %q %q %s - %s %s %s %s\n",
		e.Start, request, e.Code, e.Flags, dash(e.Details), e.BytesReceived, e.BytesSent, e.Duration, dash(e.UpstreamTime),
		dash(e.ForwardedFor), dash(e.UserAgent), dash(e.RequestID), dash(e.Authority), dash(e.UpstreamHost), dash(e.Cluster),
		e.Local, e.Remote, dash(e.ServerName), dash(e.Route)))
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
