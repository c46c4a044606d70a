package server

import (
	"bytes"
	"io"
)

// tailStart returns where the last n lines of the size bytes of r begin. A last
// line without a line feed is a line. n < 0 means all lines.
func tailStart(r io.ReaderAt, size, n int64) (int64, error) {
	switch {
	case n < 0 || size == 0:
		return 0, nil
	case n == 0:
		return size, nil
	}
	const block = 16 << 10
	buf := make([]byte, block)
	end := size - 1 // the last byte: if it is a line feed it ends the last line and begins none
	for end > 0 {
		begin := max(end-block, 0)
		chunk := buf[:end-begin]
		if _, err := r.ReadAt(chunk, begin); err != nil {
			return 0, err
		}
		for {
			i := bytes.LastIndexByte(chunk, '\n')
			if i < 0 {
				break
			}
			if n--; n == 0 {
				return begin + int64(i) + 1, nil
			}
			chunk = chunk[:i]
		}
		end = begin
	}
	return 0, nil
}
