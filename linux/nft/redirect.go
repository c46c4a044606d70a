package nft

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Keys of Meta for packets that a process of this machine sends.
const (
	MetaUID uint32 = unix.NFT_META_SKUID
	MetaGID uint32 = unix.NFT_META_SKGID
)

// NFTA_REDIR_REG_PROTO_MIN of linux/netfilter/nf_tables.h.
const redirPort = 1

// Redirect sends the connection to a port of this machine: to the address of the
// interface it came in by, or to the loopback address if this machine opened it.
func (r *Rule) Redirect(port uint16) *Rule {
	return r.Imm(R(0), binary.BigEndian.AppendUint16(nil, port)).expr("redir", func(b []byte) []byte {
		return appendU32(b, redirPort, uint32(R(0)))
	})
}

// ID matches packets of sockets of a user (MetaUID) or a group (MetaGID).
func (r *Rule) ID(key uint32, op Op, id uint32) *Rule {
	return r.Meta(key, R(0)).Cmp(op, R(0), u32(id))
}
