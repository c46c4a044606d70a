// Package controllerstest runs controllers against an API server in memory
// (client-go's fake clientset with the server-side habits that controllers rely
// on: UIDs, generated names, generations, status as a subresource, graceful
// namespace finalization), and waits for what they do by events, never by time.
package controllerstest
