// Package cors answers preflight requests and marks responses for other origins
// (Fetch standard, §3.2).
package cors
