package nft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// A RuleInfo is a rule as the kernel holds it.
type RuleInfo struct {
	Chain   string
	Comment string
	Handle  uint64
}

// An Element is a set's element as the kernel holds it.
type Element struct {
	Key     []byte
	Data    []byte  // of a map
	Verdict Verdict // of a verdict map
	End     bool    // the end of a range
}

// HasTable says whether the table is there.
func (c *Conn) HasTable(f Family, table string) (bool, error) {
	found := false
	err := c.dump(unix.NFT_MSG_GETTABLE, f, nil, func(attrs []byte) {
		if cstring(find(attrs, unix.NFTA_TABLE_NAME)) == table {
			found = true
		}
	})
	return found, err
}

// Chains returns the names of a table's chains.
func (c *Conn) Chains(f Family, table string) ([]string, error) {
	var out []string
	err := c.dump(unix.NFT_MSG_GETCHAIN, f, appendString(nil, unix.NFTA_CHAIN_TABLE, table), func(attrs []byte) {
		if cstring(find(attrs, unix.NFTA_CHAIN_TABLE)) == table {
			out = append(out, cstring(find(attrs, unix.NFTA_CHAIN_NAME)))
		}
	})
	return out, err
}

// Rules returns a table's rules, chain by chain, in their order.
func (c *Conn) Rules(f Family, table string) ([]RuleInfo, error) {
	var out []RuleInfo
	err := c.dump(unix.NFT_MSG_GETRULE, f, appendString(nil, unix.NFTA_RULE_TABLE, table), func(attrs []byte) {
		var r RuleInfo
		mine := false
		walk(attrs, func(t uint16, d []byte) {
			switch t {
			case unix.NFTA_RULE_TABLE:
				mine = cstring(d) == table
			case unix.NFTA_RULE_CHAIN:
				r.Chain = cstring(d)
			case unix.NFTA_RULE_HANDLE:
				if len(d) == 8 {
					r.Handle = binary.BigEndian.Uint64(d)
				}
			case unix.NFTA_RULE_USERDATA:
				if len(d) > 2 && d[0] == 0 && int(d[1])+2 <= len(d) {
					r.Comment = cstring(d[2 : 2+int(d[1])])
				}
			}
		})
		if mine {
			out = append(out, r)
		}
	})
	return out, err
}

// Elements calls f for each element of a set; the element's slices are valid
// during the call only.
func (c *Conn) Elements(fam Family, table, set string, f func(Element)) error {
	body := appendString(nil, unix.NFTA_SET_ELEM_LIST_TABLE, table)
	body = appendString(body, unix.NFTA_SET_ELEM_LIST_SET, set)
	return c.dump(unix.NFT_MSG_GETSETELEM, fam, body, func(attrs []byte) {
		walk(find(attrs, unix.NFTA_SET_ELEM_LIST_ELEMENTS), func(_ uint16, elem []byte) {
			var e Element
			walk(elem, func(t uint16, d []byte) {
				switch t {
				case unix.NFTA_SET_ELEM_KEY:
					e.Key = find(d, unix.NFTA_DATA_VALUE)
				case unix.NFTA_SET_ELEM_DATA:
					e.Data = find(d, unix.NFTA_DATA_VALUE)
					if v := find(d, unix.NFTA_DATA_VERDICT); v != nil {
						e.Verdict = parseVerdict(v)
					}
				case unix.NFTA_SET_ELEM_FLAGS:
					e.End = len(d) == 4 && binary.BigEndian.Uint32(d)&unix.NFT_SET_ELEM_INTERVAL_END != 0
				}
			})
			if e.Key != nil {
				f(e)
			}
		})
	})
}

func parseVerdict(b []byte) (v Verdict) {
	walk(b, func(t uint16, d []byte) {
		switch {
		case t == unix.NFTA_VERDICT_CODE && len(d) == 4:
			v.Code = int32(binary.BigEndian.Uint32(d))
		case t == unix.NFTA_VERDICT_CHAIN:
			v.Chain = cstring(d)
		}
	})
	return v
}

// errInterrupted says that the kernel's state changed during a dump.
var errInterrupted = errors.New("changed during the dump")

// dump asks for a list and calls f with the attributes of each answer.
func (c *Conn) dump(typ uint16, fam Family, body []byte, f func(attrs []byte)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	buf, _ := appendHeader(nil, unix.NFNL_SUBSYS_NFTABLES<<8|typ, unix.NLM_F_REQUEST|unix.NLM_F_DUMP, fam, 0)
	buf = append(buf, body...)
	binary.NativeEndian.PutUint32(buf, uint32(len(buf)))
	c.seq++
	binary.NativeEndian.PutUint32(buf[8:], c.seq)
	if err := c.send(buf); err != nil {
		return err
	}
	interrupted := false
	for {
		msgs, err := c.receive()
		if err != nil {
			return err
		}
		for len(msgs) >= unix.NLMSG_HDRLEN {
			n := int(binary.NativeEndian.Uint32(msgs))
			if n < unix.NLMSG_HDRLEN || n > len(msgs) {
				break
			}
			msg := msgs[:n]
			msgs = msgs[min((n+3)&^3, len(msgs)):]
			if binary.NativeEndian.Uint32(msg[8:]) != c.seq {
				continue
			}
			if binary.NativeEndian.Uint16(msg[6:])&unix.NLM_F_DUMP_INTR != 0 {
				interrupted = true
			}
			switch binary.NativeEndian.Uint16(msg[4:]) {
			case unix.NLMSG_DONE:
				if interrupted {
					return fmt.Errorf("nf_tables: %w", errInterrupted)
				}
				return nil
			case unix.NLMSG_ERROR:
				errno := unix.Errno(-int32(binary.NativeEndian.Uint32(msg[unix.NLMSG_HDRLEN:])))
				if errno == unix.ENOENT {
					return fmt.Errorf("nf_tables: %w", ErrNotFound)
				}
				return fmt.Errorf("nf_tables: dump: %w", errno)
			default:
				f(msg[unix.NLMSG_HDRLEN+4:])
			}
		}
	}
}
