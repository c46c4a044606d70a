// Package install is "peri install" and "peri uninstall": the binary, its
// configuration and a systemd unit put where they belong, and taken away again.
//
//	plan.go       the files of a machine, below a root        what is where
//	binary.go     the running binary, copied and renamed      never written in place: containers link to it
//	config.go     the configuration, with the flags given     merged with what is there
//	unit.go       the systemd unit
//	systemd.go    start and stop, or what is missing
//	uninstall.go  all of it away, by the record of the installation
//
// With --root the files go below a directory and nothing is started: for packages,
// images of machines, and tests.
package install
