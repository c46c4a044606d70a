// Package apps holds the resources of group apps, one file a kind.
// To add a kind, write its file and name it in Resources.
package apps
