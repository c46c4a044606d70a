// Package clusters is "peri clusters": the clusters on this machine that have a name.
package clusters
