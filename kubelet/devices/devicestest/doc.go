// Package devicestest has a device plug-in (v1beta1) whose devices and answers a test
// decides.
package devicestest
