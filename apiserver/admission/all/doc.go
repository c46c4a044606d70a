// Package all is the explicit list of admission plug-ins, in upstream's order.
package all
