// Package pressure tells how much is left of what a machine's pods share: of the
// file systems (space and inodes), of memory and of process IDs. Each answer costs
// one system call or one small read of /proc.
package pressure
