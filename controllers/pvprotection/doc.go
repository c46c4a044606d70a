// Package pvprotection keeps a volume that is being deleted while it is bound.
package pvprotection
