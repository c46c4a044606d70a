package nft

import (
	"encoding/binary"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// A Family says which packets a table sees.
type Family uint8

// Families.
const (
	IPv4 Family = unix.NFPROTO_IPV4
	IPv6 Family = unix.NFPROTO_IPV6
)

// AddrLen is the length of the family's addresses in bytes.
func (f Family) AddrLen() int {
	if f == IPv6 {
		return 16
	}
	return 4
}

// Sections of a batch, in the order in which the kernel gets them: what is
// referred to comes before what refers to it, and goes after it.
const (
	secTable    = iota // tables, chains and sets
	secUnlink          // elements that go
	secFlush           // rules that go
	secRules           // rules that come; before elements, which the kernel walks for each rule
	secElements        // elements that come
	secLink            // elements with verdicts that come
	secDelete          // chains and sets that go
	sections
)

// maxMessage bounds one message with elements: the list is one attribute, whose
// length has 16 bits.
const maxMessage = 48 << 10

// A Batch is a transaction on one table, in the making. All of it takes effect
// or none. Operations are put in an order that works, whatever order they were
// called in: new chains and sets, removed elements, flushed chains, new rules,
// new elements, new verdict elements, removed chains and sets.
type Batch struct {
	family Family
	table  string
	setID  uint32
	sec    [sections][]byte
	open   [sections]openElements
}

// openElements is a message with set elements that more can be added to.
type openElements struct {
	set     string
	typ     uint16
	msg     int // offset of the message, -1 when none is open
	list    int // offset of its list attribute
	started bool
}

// NewBatch starts a transaction on table.
func NewBatch(family Family, table string) *Batch {
	return &Batch{family: family, table: table}
}

// Len is the size of the transaction so far, in bytes.
func (b *Batch) Len() int {
	n := 0
	for _, s := range b.sec {
		n += len(s)
	}
	return n
}

// Reset empties the batch and keeps its buffers.
func (b *Batch) Reset() {
	for i := range b.sec {
		b.sec[i] = b.sec[i][:0]
		b.open[i] = openElements{}
	}
}

// message appends a message to a section; body appends its attributes.
func (b *Batch) message(sec int, typ, flags uint16, body func([]byte) []byte) {
	b.closeElements(sec)
	buf, at := b.header(b.sec[sec], typ, flags)
	buf = body(buf)
	binary.NativeEndian.PutUint32(buf[at:], uint32(len(buf)-at))
	b.sec[sec] = buf
}

func (b *Batch) header(buf []byte, typ, flags uint16) ([]byte, int) {
	return appendHeader(buf, unix.NFNL_SUBSYS_NFTABLES<<8|typ, unix.NLM_F_REQUEST|flags, b.family, 0)
}

// appendHeader appends nlmsghdr (length and sequence come later) and nfgenmsg.
func appendHeader(buf []byte, typ, flags uint16, family Family, res uint16) ([]byte, int) {
	at := len(buf)
	buf = binary.NativeEndian.AppendUint32(buf, 0)
	buf = binary.NativeEndian.AppendUint16(buf, typ)
	buf = binary.NativeEndian.AppendUint16(buf, flags)
	buf = append(buf, 0, 0, 0, 0, 0, 0, 0, 0) // sequence, port
	buf = append(buf, byte(family), unix.NFNETLINK_V0)
	return binary.BigEndian.AppendUint16(buf, res), at
}

// AddTable makes the table, if it is not there.
func (b *Batch) AddTable() {
	b.message(secTable, unix.NFT_MSG_NEWTABLE, unix.NLM_F_CREATE, func(m []byte) []byte {
		return appendString(m, unix.NFTA_TABLE_NAME, b.table)
	})
}

// RemoveTable removes the table with all that is in it. To remove one that may
// not be there, call AddTable before. An AddTable after it makes a new, empty one.
func (b *Batch) RemoveTable() {
	b.message(secTable, unix.NFT_MSG_DELTABLE, 0, func(m []byte) []byte {
		return appendString(m, unix.NFTA_TABLE_NAME, b.table)
	})
}

// A Hook makes a chain a base chain.
type Hook struct {
	Type     string // "filter", "nat" or "route"
	Num      uint32 // Prerouting …
	Priority int32
}

// Hook numbers and the usual priorities.
const (
	Prerouting  uint32 = unix.NF_INET_PRE_ROUTING
	Input       uint32 = unix.NF_INET_LOCAL_IN
	Forward     uint32 = unix.NF_INET_FORWARD
	Output      uint32 = unix.NF_INET_LOCAL_OUT
	Postrouting uint32 = unix.NF_INET_POST_ROUTING

	PriorityConntrack int32 = -200
	PriorityMangle    int32 = -150
	PriorityDstNAT    int32 = -100
	PriorityFilter    int32 = 0
	PrioritySrcNAT    int32 = 100
)

// AddChain makes a chain, if it is not there; hook is nil for one that is only jumped to.
func (b *Batch) AddChain(name string, hook *Hook) {
	b.message(secTable, unix.NFT_MSG_NEWCHAIN, unix.NLM_F_CREATE, func(m []byte) []byte {
		m = appendString(m, unix.NFTA_CHAIN_TABLE, b.table)
		m = appendString(m, unix.NFTA_CHAIN_NAME, name)
		if hook != nil {
			var at int
			m, at = begin(m, unix.NFTA_CHAIN_HOOK)
			m = appendU32(m, unix.NFTA_HOOK_HOOKNUM, hook.Num)
			m = appendU32(m, unix.NFTA_HOOK_PRIORITY, uint32(hook.Priority))
			m = end(m, at)
			m = appendU32(m, unix.NFTA_CHAIN_POLICY, 1) // accept
			m = appendString(m, unix.NFTA_CHAIN_TYPE, hook.Type)
		}
		return m
	})
}

// FlushChain removes a chain's rules.
func (b *Batch) FlushChain(name string) {
	b.message(secFlush, unix.NFT_MSG_DELRULE, 0, func(m []byte) []byte {
		m = appendString(m, unix.NFTA_RULE_TABLE, b.table)
		return appendString(m, unix.NFTA_RULE_CHAIN, name)
	})
}

// RemoveChain removes a chain and its rules; nothing may refer to it any more.
func (b *Batch) RemoveChain(name string) {
	b.message(secDelete, unix.NFT_MSG_DELCHAIN, 0, func(m []byte) []byte {
		m = appendString(m, unix.NFTA_CHAIN_TABLE, b.table)
		return appendString(m, unix.NFTA_CHAIN_NAME, name)
	})
}

// AddRule appends a rule to a chain. The comment is kept with it and is what
// Conn.Rules returns.
func (b *Batch) AddRule(chain, comment string, r *Rule) {
	b.message(secRules, unix.NFT_MSG_NEWRULE, unix.NLM_F_CREATE|unix.NLM_F_APPEND, func(m []byte) []byte {
		m = appendString(m, unix.NFTA_RULE_TABLE, b.table)
		m = appendString(m, unix.NFTA_RULE_CHAIN, chain)
		var at int
		m, at = begin(m, unix.NFTA_RULE_EXPRESSIONS)
		m = append(m, r.buf...)
		m = end(m, at)
		if comment != "" {
			if len(comment) > 254 {
				comment = comment[:254]
			}
			// A comment is the first of libnftnl's user data: type, length, value.
			ud := append([]byte{0, byte(len(comment) + 1)}, comment...)
			m = appendAttr(m, unix.NFTA_RULE_USERDATA, append(ud, 0))
		}
		return m
	})
}

// A Set is a set, or a map when DataType is not 0.
type Set struct {
	Name     string
	KeyType  uint32 // of Type, shown by nft
	KeyLen   int    // bytes; parts of a concatenation are padded to four
	DataType uint32 // Verdict for a verdict map
	DataLen  int
	Interval bool          // holds ranges
	Dynamic  bool          // rules may change it
	Expires  bool          // elements have a time to live
	Timeout  time.Duration // of elements that do not say otherwise
}

// AddSet makes a set, if it is not there.
func (b *Batch) AddSet(s Set) {
	b.setID++
	var flags uint32
	if s.Interval {
		flags |= unix.NFT_SET_INTERVAL
	}
	if s.DataType != 0 {
		flags |= unix.NFT_SET_MAP
	}
	if s.Expires {
		flags |= unix.NFT_SET_TIMEOUT
	}
	if s.Dynamic {
		flags |= unix.NFT_SET_EVAL
	}
	b.message(secTable, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE, func(m []byte) []byte {
		m = appendString(m, unix.NFTA_SET_TABLE, b.table)
		m = appendString(m, unix.NFTA_SET_NAME, s.Name)
		m = appendU32(m, unix.NFTA_SET_FLAGS, flags)
		m = appendU32(m, unix.NFTA_SET_KEY_TYPE, s.KeyType)
		m = appendU32(m, unix.NFTA_SET_KEY_LEN, uint32(s.KeyLen))
		if s.DataType != 0 {
			m = appendU32(m, unix.NFTA_SET_DATA_TYPE, s.DataType)
			m = appendU32(m, unix.NFTA_SET_DATA_LEN, uint32(s.DataLen))
		}
		m = appendU32(m, unix.NFTA_SET_ID, b.setID)
		if s.Timeout != 0 {
			m = appendU64(m, unix.NFTA_SET_TIMEOUT, uint64(s.Timeout.Milliseconds()))
		}
		return m
	})
}

// RemoveSet removes a set; no rule may refer to it any more.
func (b *Batch) RemoveSet(name string) {
	b.message(secDelete, unix.NFT_MSG_DELSET, 0, func(m []byte) []byte {
		m = appendString(m, unix.NFTA_SET_TABLE, b.table)
		return appendString(m, unix.NFTA_SET_NAME, name)
	})
}

// FlushSet removes all elements of a set.
func (b *Batch) FlushSet(set string) {
	b.message(secUnlink, unix.NFT_MSG_DELSETELEM, 0, func(m []byte) []byte {
		m = appendString(m, unix.NFTA_SET_ELEM_LIST_TABLE, b.table)
		return appendString(m, unix.NFTA_SET_ELEM_LIST_SET, set)
	})
}

// AddElement adds an element; data is nil in a plain set. An element that is
// there with other data is an error: remove it in the same batch.
func (b *Batch) AddElement(set string, key, data []byte) {
	b.element(secElements, unix.NFT_MSG_NEWSETELEM, set, key, func(m []byte) []byte {
		if data == nil {
			return m
		}
		var at int
		m, at = begin(m, unix.NFTA_SET_ELEM_DATA)
		m = appendAttr(m, unix.NFTA_DATA_VALUE, data)
		return end(m, at)
	})
}

// AddVerdict adds an element to a verdict map.
func (b *Batch) AddVerdict(set string, key []byte, v Verdict) {
	b.element(secLink, unix.NFT_MSG_NEWSETELEM, set, key, func(m []byte) []byte {
		var at int
		m, at = begin(m, unix.NFTA_SET_ELEM_DATA)
		m = v.append(m)
		return end(m, at)
	})
}

// RemoveElement removes an element.
func (b *Batch) RemoveElement(set string, key []byte) {
	b.element(secUnlink, unix.NFT_MSG_DELSETELEM, set, key, func(m []byte) []byte { return m })
}

// AddRange adds the addresses of p to an interval set. Ranges in one set must not overlap.
func (b *Batch) AddRange(set string, p netip.Prefix) {
	b.rangeOp(secElements, unix.NFT_MSG_NEWSETELEM, set, p)
}

func (b *Batch) rangeOp(sec int, typ uint16, set string, p netip.Prefix) {
	p = p.Masked()
	b.element(sec, typ, set, p.Addr().AsSlice(), func(m []byte) []byte { return m })
	if after, ok := next(p); ok {
		b.element(sec, typ, set, after, func(m []byte) []byte {
			return appendU32(m, unix.NFTA_SET_ELEM_FLAGS, unix.NFT_SET_ELEM_INTERVAL_END)
		})
	}
}

// next returns the address after p's last; ok is false when there is none.
func next(p netip.Prefix) ([]byte, bool) {
	a := p.Addr().AsSlice()
	for i := p.Bits() - 1; i >= 0; i-- {
		bit := byte(0x80) >> (i % 8)
		a[i/8] ^= bit
		if a[i/8]&bit != 0 {
			return a, true
		}
	}
	return nil, false
}

// element adds one element to the open message, or opens one.
func (b *Batch) element(sec int, typ uint16, set string, key []byte, rest func([]byte) []byte) {
	o := &b.open[sec]
	buf := b.sec[sec]
	if !o.started || o.set != set || o.typ != typ || len(buf)-o.msg > maxMessage {
		b.closeElements(sec)
		buf = b.sec[sec]
		var flags uint16
		if typ == unix.NFT_MSG_NEWSETELEM {
			flags = unix.NLM_F_CREATE
		}
		*o = openElements{set: set, typ: typ, started: true}
		buf, o.msg = b.header(buf, typ, flags)
		buf = appendString(buf, unix.NFTA_SET_ELEM_LIST_TABLE, b.table)
		buf = appendString(buf, unix.NFTA_SET_ELEM_LIST_SET, set)
		buf, o.list = begin(buf, unix.NFTA_SET_ELEM_LIST_ELEMENTS)
	}
	buf, at := begin(buf, unix.NFTA_LIST_ELEM)
	buf, k := begin(buf, unix.NFTA_SET_ELEM_KEY)
	buf = appendAttr(buf, unix.NFTA_DATA_VALUE, key)
	buf = end(buf, k)
	buf = rest(buf)
	b.sec[sec] = end(buf, at)
}

func (b *Batch) closeElements(sec int) {
	o := &b.open[sec]
	if !o.started {
		return
	}
	buf := b.sec[sec]
	end(buf, o.list)
	binary.NativeEndian.PutUint32(buf[o.msg:], uint32(len(buf)-o.msg))
	o.started = false
}
