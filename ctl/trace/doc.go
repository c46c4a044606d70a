// Package trace is "peri trace": the journey of an object as a timeline, from
// the request that made it to the first answered request.
package trace
