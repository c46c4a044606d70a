// Package hollow is "peri hollow": nodes that exist only in the API.
package hollow
