// Package logind delays the machine's shutdown through systemd's login manager
// (org.freedesktop.login1 on the system D-Bus): a lock that it waits for, and the
// news that a shutdown has begun. A machine without it answers Connect with an error.
package logind
