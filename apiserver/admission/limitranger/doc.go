// Package limitranger is the admission plug-in LimitRanger: the LimitRanges of a
// namespace give containers the requests and limits that they do not name, and bound
// those of containers, pods and claims.
package limitranger
