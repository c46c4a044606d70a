// Package defaulttolerationseconds is the admission plug-in
// DefaultTolerationSeconds: pods tolerate an unready or unreachable node for
// five minutes unless they say otherwise.
package defaulttolerationseconds
