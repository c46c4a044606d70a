// Package images builds the container images that tests and the demonstration
// run, on this machine and without any image registry.
//
//	Busybox   the static busybox of Debian, with a link for each applet
//	Nginx     Debian's package and what it depends on, made to run in a container
//	Redis     the same
//	Files     a static program and whatever else is given
//	Program   a command of this repository: admission, a webhook for tests
//
// Child registry serves them over plain HTTP. Debian's packages are fetched once
// into a cache (os.UserCacheDir/periplus/debian); a test that needs another
// program adds a Debian value like those in programs.go.
package images
