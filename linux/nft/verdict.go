package nft

import "golang.org/x/sys/unix"

// A Verdict ends the evaluation of a chain.
type Verdict struct {
	Code  int32
	Chain string
}

// Verdicts.
var (
	Drop   = Verdict{Code: 0}
	Accept = Verdict{Code: 1}
	Return = Verdict{Code: unix.NFT_RETURN}
)

// Goto continues in chain and does not come back.
func Goto(chain string) Verdict { return Verdict{unix.NFT_GOTO, chain} }

// Jump continues in chain and comes back after it.
func Jump(chain string) Verdict { return Verdict{unix.NFT_JUMP, chain} }

func (v Verdict) append(b []byte) []byte {
	b, at := begin(b, unix.NFTA_DATA_VERDICT)
	b = appendU32(b, unix.NFTA_VERDICT_CODE, uint32(v.Code))
	if v.Chain != "" {
		b = appendString(b, unix.NFTA_VERDICT_CHAIN, v.Chain)
	}
	return end(b, at)
}

// Types of keys and data, so that nft can show them. Concat joins several.
const (
	TypeInteger uint32 = 4
	TypeIPv4    uint32 = 7
	TypeIPv6    uint32 = 8
	TypeProto   uint32 = 12
	TypePort    uint32 = 13
	TypeMark    uint32 = 19
	TypeVerdict uint32 = unix.NFT_DATA_VERDICT
)

// Concat is the type of a concatenation: at most five parts.
func Concat(types ...uint32) uint32 {
	var t uint32
	for _, x := range types {
		t = t<<6 | x
	}
	return t
}

// AddrType is the type of the family's addresses.
func (f Family) AddrType() uint32 {
	if f == IPv6 {
		return TypeIPv6
	}
	return TypeIPv4
}
