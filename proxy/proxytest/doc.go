// Package proxytest is the suite that each proxy backend must pass: real
// connections between namespaces, through the rules that the backend made.
package proxytest
