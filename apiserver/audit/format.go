package audit

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// line returns an event as one line of the log.
func line(format string, e *auditv1.Event) ([]byte, error) {
	if format == formatLegacy {
		return append([]byte(legacy(e)), '\n'), nil
	}
	out, err := json.Marshal(e)
	return append(out, '\n'), err
}

// legacy is the format of upstream before there were levels: no objects, no annotations.
func legacy(e *auditv1.Event) string {
	name, groups, as, asGroups := "<none>", "<none>", "<self>", "<lookup>"
	if e.User.Username != "" {
		name = e.User.Username
		if len(e.User.Groups) > 0 {
			groups = quoted(e.User.Groups)
		}
	}
	if u := e.ImpersonatedUser; u != nil {
		as = u.Username
		if u.Groups != nil {
			asGroups = quoted(u.Groups)
		}
	}
	namespace, response, ip := "<none>", "<deferred>", "<unknown>"
	if e.ObjectRef != nil && e.ObjectRef.Namespace != "" {
		namespace = e.ObjectRef.Namespace
	}
	if e.ResponseStatus != nil {
		response = strconv.Itoa(int(e.ResponseStatus.Code))
	}
	if len(e.SourceIPs) > 0 {
		ip = e.SourceIPs[0]
	}
	return fmt.Sprintf(`%s AUDIT: id=%q stage=%q ip=%q method=%q user=%q groups=%q as=%q asgroups=%q user-agent=%q namespace=%q uri=%q response="%s"`,
		e.RequestReceivedTimestamp.Format(time.RFC3339Nano), e.AuditID, e.Stage, ip, e.Verb, name, groups, as, asGroups, e.UserAgent, namespace, e.RequestURI, response)
}

func quoted(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Quote(s)
	}
	return strings.Join(out, ",")
}
