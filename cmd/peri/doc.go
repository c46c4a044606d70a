// Command peri is a complete Kubernetes in one binary.
package main
