// Command admission is an admission webhook for tests: it runs in an image of its
// own, without anything from this repository.
//
//	admission NAME…      serves HTTPS on port 8443 under these DNS names and addresses
//
// It makes its own certificate and prints the bundle that verifies it, base64
// encoded, as its first line. Paths:
//
//	/label     adds the label touched=yes (a JSON patch)
//	/deny      refuses with "denied by test"
//	/registry  refuses pods whose images do not come from 127.0.0.1:5000/
//	/allow     allows, with a warning
//	/slow      never answers
package main
