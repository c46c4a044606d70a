// Package why is "peri why": what is wrong with an object, the root cause first,
// with the evidence and the command that mends it. The finding out is insight/why;
// here are the command line, the connections to ports and names, and --fix.
package why
