// Package batch holds the resources of group batch, one file a kind.
// To add a kind, write its file and name it in Resources.
package batch
