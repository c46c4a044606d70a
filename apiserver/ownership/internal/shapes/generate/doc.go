// Command generate writes the table of shapes to a file.
package main
