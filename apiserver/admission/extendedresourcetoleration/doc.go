// Package extendedresourcetoleration is the admission plug-in
// ExtendedResourceToleration: pods that ask for a resource such as example.com/gpu
// tolerate a taint of that name, by which nodes with such devices keep other pods
// away. It is off by default.
package extendedresourcetoleration
