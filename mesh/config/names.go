package config

import "google.golang.org/grpc/codes"

// RetryOn are the reasons to try again, with Envoy's names.
var RetryOn = map[string]struct{}{
	"5xx": {}, "gateway-error": {}, "reset": {}, "reset-before-request": {}, "connect-failure": {}, "envoy-ratelimited": {},
	"retriable-4xx": {}, "refused-stream": {}, "retriable-status-codes": {}, "retriable-headers": {},
	"cancelled": {}, "deadline-exceeded": {}, "internal": {}, "resource-exhausted": {}, "unavailable": {},
}

// GRPCStatus reads the name of a gRPC status: "UNAVAILABLE".
func GRPCStatus(name string) (uint32, bool) {
	var c codes.Code
	if err := c.UnmarshalJSON([]byte(`"` + name + `"`)); err != nil {
		return 0, false
	}
	return uint32(c), true
}
