package otlp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// path is where collectors take traces.
const path = "/v1/traces"

// timeout bounds Send.
const timeout = 10 * time.Second

// Endpoint completes the address of a collector: without a path it is /v1/traces.
func Endpoint(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("%q is not the address of a collector: must be like http://localhost:4318", address)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = path
	}
	return u.String(), nil
}

// Send hands a request to the collector at an address, with further headers.
func Send(ctx context.Context, address string, headers http.Header, r *Request) error {
	endpoint, err := Endpoint(address)
	if err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	maps.Copy(q.Header, headers)
	q.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return fmt.Errorf("send the journey to the collector: %w", err)
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // the status says enough
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector at %s has answered %s: %s", endpoint, answer.Status, strings.TrimSpace(string(said)))
	}
	// It may have taken only some of them (partial success).
	var partial struct {
		PartialSuccess struct {
			RejectedSpans json.Number `json:"rejectedSpans"`
			ErrorMessage  string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(said, &partial) == nil && partial.PartialSuccess.RejectedSpans != "" && partial.PartialSuccess.RejectedSpans != "0" {
		return fmt.Errorf("the collector at %s has refused %s spans: %s", endpoint, partial.PartialSuccess.RejectedSpans, partial.PartialSuccess.ErrorMessage)
	}
	return nil
}
