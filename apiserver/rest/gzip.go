package rest

import (
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// compressFrom is the size from which answers are compressed for those who accept
// it, as upstream.
const compressFrom = 128 << 10

// gzipWriters are kept, as each holds 800 KB.
var gzipWriters = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// compresses reports whether an answer of a size is compressed.
func compresses(r *http.Request, size int) bool {
	if size <= compressFrom {
		return false
	}
	for part := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.ReplaceAll(weight, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// writeCompressed writes a body; its header has been written.
func writeCompressed(w http.ResponseWriter, body []byte) error {
	z := gzipWriters.Get().(*gzip.Writer)
	defer gzipWriters.Put(z)
	z.Reset(w)
	if _, err := z.Write(body); err != nil {
		return err
	}
	return z.Close()
}
