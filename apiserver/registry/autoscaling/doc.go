// Package autoscaling holds the resources of group autoscaling, one file a kind.
// To add a kind, write its file and name it in Resources.
package autoscaling
