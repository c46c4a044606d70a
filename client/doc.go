// Package client gives components their two ways to the API server. Both are
// plain client-go: kubernetes.Interface, informers.SharedInformerFactory.
//
//	another process:  TLS, protobuf, HTTP/2 (Remote)
//	the same process: writes call the server's handler (InProcess), informers read
//	                  its watch cache and share the decoded objects (NewFactory)
//
// A component cannot tell which of the two it got. Objects from informers are
// shared and immutable: DeepCopy before the first write.
package client
