// Package storetest is the suite that every store.Store must pass.
package storetest
