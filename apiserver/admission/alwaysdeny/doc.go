// Package alwaysdeny is the admission plug-in AlwaysDeny, which refuses every write.
// It is off by default.
package alwaysdeny
