// Package all is the explicit list of the controllers that Periplus has. A new
// controller is one folder beside this one and one line in all.go.
package all
