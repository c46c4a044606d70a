// Package admissiontest is what tests of admission plug-ins have in common: a few
// objects to read, and a table of writes.
package admissiontest
