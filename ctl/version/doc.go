// Package version is "peri version".
package version
