package ownership

// Union and Minus combine sets, for tests against the library.
func Union(a, b []byte) ([]byte, error) { return combine(nil, union, a, b) }

// Minus subtracts b from a.
func Minus(a, b []byte) ([]byte, error) { return combine(nil, minus, a, b) }
