// Command demo is "make demo": it shows the whole journey on a machine of its own
// (test/netlab), typing what a person would type, and leaves nothing behind.
//
//	peri up ─ the self image ─ nginx from a registry ─ curl through the Service
//	        ─ what cannot be scheduled, what cannot be pulled ─ peri trace ─ peri down
package main
