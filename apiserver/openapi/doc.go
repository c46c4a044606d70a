// Package openapi describes the API (OpenAPI v2 and v3) from the Go types, their
// documentation and the resources that are served. Documents are built on
// first use and built again when the resources change.
package openapi
