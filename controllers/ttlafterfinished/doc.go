// Package ttlafterfinished deletes Jobs whose ttlSecondsAfterFinished is over. A
// timer exists only for a finished Job with such a time.
package ttlafterfinished
