// Package taintnodesbycondition is the admission plug-in TaintNodesByCondition: a new node
// takes no pods until the controller of nodes has seen that it is ready.
package taintnodesbycondition
