// Package porttest has ports of the loopback interface for tests. A port that is only
// free may become another test's listener; these stay taken until the test ends.
package porttest
