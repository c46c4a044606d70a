// Package rbac allows and denies requests and connections by who asks for what (xDS:
// envoy.filters.http.rbac and envoy.filters.network.rbac).
//
// A Policy matches if its permission (what) and its principal (who) do. Both are
// trees of Matchers: And(Path(…), Or(Method("GET"), Method("HEAD"))).
package rbac
