// Package machine tells what machine this is: processors, memory, disk, kernel,
// identity and addresses, from /proc, /sys, /etc and the system's calls.
package machine
