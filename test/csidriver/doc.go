// Command csidriver is a storage driver as third parties write them, for tests: a
// program of its own with a socket, disk.example.com, that has to be attached. Its
// volumes are directories, mounted by binding.
package main
