// Command nonewprivs says who it runs as, as upstream's test image of that name does.
// In its image it belongs to root and has the set-user-ID bit.
package main

import (
	"fmt"
	"os"
)

func main() { fmt.Printf("Effective uid: %d\n", os.Geteuid()) }
