// Package device describes device nodes: type, numbers, mode and owner.
package device
