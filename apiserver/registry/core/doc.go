// Package core holds the resources of the core group (v1), one file a kind.
// To add a kind, write its file and name it in Resources.
package core
