// Package http1 reads and writes HTTP/1.1 on connections (RFC 9112), for both sides
// of a proxy. It holds no connection and starts nothing.
//
//	Reader ── ReadRequest / ReadResponse ── head (one allocation) + Body (how it is framed)
//	AppendRequest / AppendResponse ── bytes of a head; ChunkWriter frames a body
//
// It is strict where leniency lets one side see another message than the other
// (request smuggling): lines end with CRLF only; a bare CR or LF, folded lines, white
// space before a colon, control characters, a Content-Length beside a
// Transfer-Encoding, two lengths that differ, and transfer codings other than
// "chunked" are refused. Fields that belong to one connection (RFC 9110 §7.6.1) are
// removed while reading; Host, Content-Length and Transfer-Encoding become fields of
// the message.
package http1
