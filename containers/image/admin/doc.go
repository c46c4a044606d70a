// Package admin offers what the CRI lacks, import and export of image archives,
// as HTTP on a local socket beside the CRI's.
//
//	POST /v1/images/import?name=NAME   body: an archive; answer: {"images": […]}
//	GET  /v1/images/export?ref=REF…    answer: an archive
//
// An error is a status code and {"error": "…"}. The socket's permissions are the
// only guard, as they are for the CRI: serve it on a socket that root alone can open.
package admin
