// Package web is "peri web": a small web server for trying a cluster out. It is
// what the image periplus.io/peri runs in demonstrations and tests: it says who
// answered, so that balancing can be seen.
package web
