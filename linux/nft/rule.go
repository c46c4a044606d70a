package nft

import (
	"encoding/binary"
	"time"

	"golang.org/x/sys/unix"
)

// A Reg is one of the kernel's sixteen registers of four bytes, R(0) to R(15).
// Longer values take several in a row.
type Reg uint32

// R returns register n.
func R(n int) Reg { return Reg(unix.NFT_REG32_00 + n) }

// A Rule is a list of expressions, run in the order in which they were added
// until one does not match.
type Rule struct{ buf []byte }

// NewRule returns a rule that matches everything and does nothing.
func NewRule() *Rule { return &Rule{} }

// expr appends an expression.
func (r *Rule) expr(name string, body func([]byte) []byte) *Rule {
	b, at := begin(r.buf, unix.NFTA_LIST_ELEM)
	b = appendString(b, unix.NFTA_EXPR_NAME, name)
	b, data := begin(b, unix.NFTA_EXPR_DATA)
	b = body(b)
	b = end(b, data)
	r.buf = end(b, at)
	return r
}

// Bases of a payload.
const (
	NetworkHeader   uint32 = unix.NFT_PAYLOAD_NETWORK_HEADER
	TransportHeader uint32 = unix.NFT_PAYLOAD_TRANSPORT_HEADER
)

// Payload loads bytes of the packet.
func (r *Rule) Payload(base uint32, offset, length int, dst Reg) *Rule {
	return r.expr("payload", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_PAYLOAD_DREG, uint32(dst))
		b = appendU32(b, unix.NFTA_PAYLOAD_BASE, base)
		b = appendU32(b, unix.NFTA_PAYLOAD_OFFSET, uint32(offset))
		return appendU32(b, unix.NFTA_PAYLOAD_LEN, uint32(length))
	})
}

// SrcAddr loads the packet's source address.
func (r *Rule) SrcAddr(f Family, dst Reg) *Rule {
	if f == IPv6 {
		return r.Payload(NetworkHeader, 8, 16, dst)
	}
	return r.Payload(NetworkHeader, 12, 4, dst)
}

// DstAddr loads the packet's destination address.
func (r *Rule) DstAddr(f Family, dst Reg) *Rule {
	if f == IPv6 {
		return r.Payload(NetworkHeader, 24, 16, dst)
	}
	return r.Payload(NetworkHeader, 16, 4, dst)
}

// DstPort loads the destination port of TCP, UDP or SCTP.
func (r *Rule) DstPort(dst Reg) *Rule { return r.Payload(TransportHeader, 2, 2, dst) }

// L4Proto loads the transport protocol's number.
func (r *Rule) L4Proto(dst Reg) *Rule { return r.Meta(unix.NFT_META_L4PROTO, dst) }

// Meta loads a property of the packet.
func (r *Rule) Meta(key uint32, dst Reg) *Rule {
	return r.expr("meta", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_META_KEY, key)
		return appendU32(b, unix.NFTA_META_DREG, uint32(dst))
	})
}

// SetMeta sets a property of the packet.
func (r *Rule) SetMeta(key uint32, src Reg) *Rule {
	return r.expr("meta", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_META_KEY, key)
		return appendU32(b, unix.NFTA_META_SREG, uint32(src))
	})
}

// Keys of Meta.
const (
	MetaMark    uint32 = unix.NFT_META_MARK
	MetaIIfName uint32 = unix.NFT_META_IIFNAME
	MetaOIfName uint32 = unix.NFT_META_OIFNAME
	MetaL4Proto uint32 = unix.NFT_META_L4PROTO
)

// OIfName matches packets that leave through the interface of that name, or,
// with not, those that do not.
func (r *Rule) OIfName(name string, not bool) *Rule {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, name)
	op := Eq
	if not {
		op = Neq
	}
	return r.Meta(MetaOIfName, R(0)).Cmp(op, R(0), data)
}

// IIfName matches packets that came in through the interface of that name.
func (r *Rule) IIfName(name string) *Rule {
	data := make([]byte, unix.IFNAMSIZ)
	copy(data, name)
	return r.Meta(MetaIIfName, R(0)).Cmp(Eq, R(0), data)
}

// Keys of Ct.
const (
	CtState     uint32 = unix.NFT_CT_STATE
	CtDirection uint32 = unix.NFT_CT_DIRECTION
	CtStatus    uint32 = unix.NFT_CT_STATUS
)

// Ct loads a property of the packet's connection.
func (r *Rule) Ct(key uint32, dst Reg) *Rule {
	return r.expr("ct", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_CT_KEY, key)
		return appendU32(b, unix.NFTA_CT_DREG, uint32(dst))
	})
}

// OriginalDst loads the address that the connection was opened to, before any
// translation.
func (r *Rule) OriginalDst(f Family, dst Reg) *Rule {
	key := uint32(ctDstIP)
	if f == IPv6 {
		key = ctDstIP6
	}
	return r.ctOriginal(key, dst)
}

// OriginalDstPort loads the port that the connection was opened to.
func (r *Rule) OriginalDstPort(dst Reg) *Rule { return r.ctOriginal(unix.NFT_CT_PROTO_DST, dst) }

// NFT_CT_DST_IP and NFT_CT_DST_IP6.
const (
	ctDstIP  = 20
	ctDstIP6 = 22
)

func (r *Rule) ctOriginal(key uint32, dst Reg) *Rule {
	return r.expr("ct", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_CT_KEY, key)
		b = appendAttr(b, unix.NFTA_CT_DIRECTION, []byte{0})
		return appendU32(b, unix.NFTA_CT_DREG, uint32(dst))
	})
}

// CtNew matches packets of connections that have seen no reply yet.
func (r *Rule) CtNew() *Rule { return r.ctBits(CtState, 8) }

// CtDNAT matches packets of connections whose destination was translated.
func (r *Rule) CtDNAT() *Rule { return r.ctBits(CtStatus, 1<<5) }

func (r *Rule) ctBits(key, bits uint32) *Rule {
	return r.Ct(key, R(0)).Bitwise(R(0), R(0), u32(bits), u32(0)).Cmp(Neq, R(0), u32(0))
}

// CtReply matches packets that answer the side which opened the connection.
func (r *Rule) CtReply() *Rule { return r.Ct(CtDirection, R(0)).Cmp(Eq, R(0), []byte{1}) }

// Op compares a register with a value.
type Op uint32

// Comparisons.
const (
	Eq  Op = unix.NFT_CMP_EQ
	Neq Op = unix.NFT_CMP_NEQ
	Gte Op = unix.NFT_CMP_GTE // in network order
	Lte Op = unix.NFT_CMP_LTE
)

// Cmp goes on only when the comparison holds.
func (r *Rule) Cmp(op Op, src Reg, value []byte) *Rule {
	return r.expr("cmp", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_CMP_SREG, uint32(src))
		b = appendU32(b, unix.NFTA_CMP_OP, uint32(op))
		return appendValue(b, unix.NFTA_CMP_DATA, value)
	})
}

// Bitwise stores (src & mask) ^ xor.
func (r *Rule) Bitwise(src, dst Reg, mask, xor []byte) *Rule {
	return r.expr("bitwise", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_BITWISE_SREG, uint32(src))
		b = appendU32(b, unix.NFTA_BITWISE_DREG, uint32(dst))
		b = appendU32(b, unix.NFTA_BITWISE_LEN, uint32(len(mask)))
		b = appendValue(b, unix.NFTA_BITWISE_MASK, mask)
		return appendValue(b, unix.NFTA_BITWISE_XOR, xor)
	})
}

// Imm loads a constant.
func (r *Rule) Imm(dst Reg, value []byte) *Rule {
	return r.expr("immediate", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_IMMEDIATE_DREG, uint32(dst))
		return appendValue(b, unix.NFTA_IMMEDIATE_DATA, value)
	})
}

// In goes on when the key is in the set.
func (r *Rule) In(set string, key Reg) *Rule { return r.lookup(set, key, 0, 0) }

// NotIn goes on when the key is not in the set.
func (r *Rule) NotIn(set string, key Reg) *Rule {
	return r.lookup(set, key, 0, unix.NFT_LOOKUP_F_INV)
}

// Map loads the value under the key of a map; it goes on when there is one.
func (r *Rule) Map(set string, key, dst Reg) *Rule { return r.lookup(set, key, dst, 0) }

// VMap carries out the verdict under the key of a verdict map, if there is one.
func (r *Rule) VMap(set string, key Reg) *Rule {
	return r.expr("lookup", func(b []byte) []byte {
		b = appendString(b, unix.NFTA_LOOKUP_SET, set)
		b = appendU32(b, unix.NFTA_LOOKUP_SREG, uint32(key))
		return appendU32(b, unix.NFTA_LOOKUP_DREG, unix.NFT_REG_VERDICT)
	})
}

func (r *Rule) lookup(set string, key, dst Reg, flags uint32) *Rule {
	return r.expr("lookup", func(b []byte) []byte {
		b = appendString(b, unix.NFTA_LOOKUP_SET, set)
		b = appendU32(b, unix.NFTA_LOOKUP_SREG, uint32(key))
		if dst != 0 {
			b = appendU32(b, unix.NFTA_LOOKUP_DREG, uint32(dst))
		}
		if flags != 0 {
			b = appendU32(b, unix.NFTA_LOOKUP_FLAGS, flags)
		}
		return b
	})
}

// Random loads a random number below modulus, in host order.
func (r *Rule) Random(dst Reg, modulus uint32) *Rule {
	return r.expr("numgen", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_NG_DREG, uint32(dst))
		b = appendU32(b, unix.NFTA_NG_MODULUS, modulus)
		b = appendU32(b, unix.NFTA_NG_TYPE, unix.NFT_NG_RANDOM)
		return appendU32(b, unix.NFTA_NG_OFFSET, 0)
	})
}

// DNAT sends the connection to the address and port in the registers.
func (r *Rule) DNAT(f Family, addr, port Reg) *Rule {
	return r.expr("nat", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_NAT_TYPE, unix.NFT_NAT_DNAT)
		b = appendU32(b, unix.NFTA_NAT_FAMILY, uint32(f))
		b = appendU32(b, unix.NFTA_NAT_REG_ADDR_MIN, uint32(addr))
		return appendU32(b, unix.NFTA_NAT_REG_PROTO_MIN, uint32(port))
	})
}

// Masquerade gives the connection the address of the interface it leaves by.
func (r *Rule) Masquerade() *Rule {
	const fullyRandom = 1 << 4 // NF_NAT_RANGE_PROTO_RANDOM_FULLY
	return r.expr("masq", func(b []byte) []byte {
		return appendU32(b, unix.NFTA_MASQ_FLAGS, fullyRandom)
	})
}

// Remember adds the key (and, when data is not 0, the value) to a dynamic set
// for that time, or starts the time of one that is there anew.
func (r *Rule) Remember(set string, key, data Reg, ttl time.Duration) *Rule {
	return r.dynset(unix.NFT_DYNSET_OP_UPDATE, set, key, data, ttl)
}

// Forget removes the key from a dynamic set.
func (r *Rule) Forget(set string, key Reg) *Rule {
	const opDelete = 2 // NFT_DYNSET_OP_DELETE
	return r.dynset(opDelete, set, key, 0, 0)
}

func (r *Rule) dynset(op uint32, set string, key, data Reg, ttl time.Duration) *Rule {
	return r.expr("dynset", func(b []byte) []byte {
		b = appendString(b, unix.NFTA_DYNSET_SET_NAME, set)
		b = appendU32(b, unix.NFTA_DYNSET_OP, op)
		b = appendU32(b, unix.NFTA_DYNSET_SREG_KEY, uint32(key))
		if data != 0 {
			b = appendU32(b, unix.NFTA_DYNSET_SREG_DATA, uint32(data))
		}
		if ttl != 0 {
			b = appendU64(b, unix.NFTA_DYNSET_TIMEOUT, uint64(ttl.Milliseconds()))
		}
		return b
	})
}

// DstLocal matches packets for an address of this machine.
func (r *Rule) DstLocal() *Rule { return r.addrType(unix.NFTA_FIB_F_DADDR, Eq) }

// DstNotLocal matches packets for an address that is not of this machine.
func (r *Rule) DstNotLocal() *Rule { return r.addrType(unix.NFTA_FIB_F_DADDR, Neq) }

// SrcLocal matches packets from an address of this machine.
func (r *Rule) SrcLocal() *Rule { return r.addrType(unix.NFTA_FIB_F_SADDR, Eq) }

func (r *Rule) addrType(flags uint32, op Op) *Rule {
	return r.expr("fib", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_FIB_DREG, uint32(R(0)))
		b = appendU32(b, unix.NFTA_FIB_FLAGS, flags)
		return appendU32(b, unix.NFTA_FIB_RESULT, unix.NFT_FIB_RESULT_ADDRTYPE)
	}).Cmp(op, R(0), u32(unix.RTN_LOCAL))
}

// Reject refuses with ICMP port unreachable.
func (r *Rule) Reject(f Family) *Rule {
	code := byte(3) // ICMP port unreachable
	if f == IPv6 {
		code = 4 // ICMPv6 port unreachable
	}
	return r.expr("reject", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_REJECT_TYPE, unix.NFT_REJECT_ICMP_UNREACH)
		return appendAttr(b, unix.NFTA_REJECT_ICMP_CODE, []byte{code})
	})
}

// RejectTCP matches TCP and refuses with a reset, which no rate limit holds back.
func (r *Rule) RejectTCP() *Rule {
	return r.L4Proto(R(0)).Cmp(Eq, R(0), []byte{unix.IPPROTO_TCP}).expr("reject", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_REJECT_TYPE, unix.NFT_REJECT_TCP_RST)
		return appendAttr(b, unix.NFTA_REJECT_ICMP_CODE, []byte{0})
	})
}

// Log hands the first bytes of the packet to the listeners of an NFLOG group.
func (r *Rule) Log(group uint16, snaplen uint32) *Rule {
	return r.expr("log", func(b []byte) []byte {
		b = appendU16(b, unix.NFTA_LOG_GROUP, group)
		b = appendU32(b, unix.NFTA_LOG_SNAPLEN, snaplen)
		return appendU16(b, unix.NFTA_LOG_QTHRESHOLD, 1)
	})
}

// Do carries out a verdict.
func (r *Rule) Do(v Verdict) *Rule {
	return r.expr("immediate", func(b []byte) []byte {
		b = appendU32(b, unix.NFTA_IMMEDIATE_DREG, unix.NFT_REG_VERDICT)
		var at int
		b, at = begin(b, unix.NFTA_IMMEDIATE_DATA)
		b = v.append(b)
		return end(b, at)
	})
}

// Mark sets bits of the packet's mark.
func (r *Rule) Mark(bits uint32) *Rule {
	return r.Meta(MetaMark, R(0)).Bitwise(R(0), R(0), u32(^bits), u32(bits)).SetMeta(MetaMark, R(0))
}

// Unmark matches packets whose mark has the bit, and clears it.
func (r *Rule) Unmark(bit uint32) *Rule {
	return r.Meta(MetaMark, R(0)).
		Bitwise(R(0), R(1), u32(bit), u32(0)).Cmp(Neq, R(1), u32(0)).
		Bitwise(R(0), R(0), u32(^bit), u32(0)).SetMeta(MetaMark, R(0))
}

// appendValue appends a nested value.
func appendValue(b []byte, typ uint16, value []byte) []byte {
	b, at := begin(b, typ)
	b = appendAttr(b, unix.NFTA_DATA_VALUE, value)
	return end(b, at)
}

// u32 is a number as registers hold it: in host order.
func u32(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
