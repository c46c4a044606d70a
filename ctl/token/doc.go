// Package token is "peri token": the tokens with which machines join the cluster.
package token
