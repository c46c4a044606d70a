// Package balance chooses endpoints: load balancing policies (round robin, least
// request, random, ring hash), priorities, and outlier detection. It starts nothing
// and reads the clock only when it is told something; an ejection ends because the
// time has passed when the next request asks, not because a timer fires.
//
// A Host lives as long as its endpoint is in the cluster; a Set is made new for each
// change of them and is immutable, but for the counters of its policy.
package balance
