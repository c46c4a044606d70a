// Package csitest is a storage driver in memory that notes every call, for tests of
// what uses drivers.
package csitest
