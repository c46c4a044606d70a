// Package defaultbinder is the plug-in DefaultBinder: it writes the pods/binding subresource.
package defaultbinder
