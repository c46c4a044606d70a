// Package lint is "peri lint": manifests and clusters checked for what production
// needs. The rules are insight/lint's; here is the command line.
package lint
