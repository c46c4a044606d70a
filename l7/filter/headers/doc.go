// Package headers changes the headers of requests and responses: set, add, remove.
package headers
