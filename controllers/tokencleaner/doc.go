// Package tokencleaner deletes bootstrap tokens when they expire.
package tokencleaner
