// Package config is Istio's resources as typed values, read from unstructured
// objects: what pilot turns into xDS and validate checks.
package config
