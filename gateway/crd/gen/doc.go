// Command gen packs the definitions of the Gateway API from its module; run it with
// go generate in gateway/crd.
package main
