// Package cnitest is the suite that each CNI mode must pass: sandboxes in real
// network namespaces that talk with each other, with the node and with the
// outside.
package cnitest
