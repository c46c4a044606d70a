// Package manifests keeps a cluster as the files in a directory say.
//
//	<dir>/web.yaml ──► server-side apply        when the file is new or has changed, and at every start
//	file removed   ──► its objects are deleted   those that still belong to it
//	<record>       ◄── file → objects            so that nothing is forgotten while peri does not run
//
// A file that cannot be applied is an event about the node and a line in the log that
// name the file, the document and the field; what could be applied of it stays. It is
// tried again with growing pauses, because it may need something that comes later.
// Objects carry the annotation periplus.io/manifest: whoever removes it takes the
// object over.
package manifests
