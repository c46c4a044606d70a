// Package policy holds the resources of group policy, one file a kind.
// To add a kind, write its file and name it in Resources.
package policy
