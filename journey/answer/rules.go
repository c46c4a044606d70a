package answer

import "github.com/periplus/periplus/linux/nft"

// Names in the table.
const (
	setWatched   = "watched"
	chainReplies = "replies"
	chainAnswer  = "answer"
)

// addTable makes the table, in place of any that is there:
//
//	prerouting  from a watched address, in reply        ─▶ replies
//	replies     through a Service, or not to this node  ─▶ answer
//	answer      TCP with data pushed, or UDP            ─▶ log, out of the set
func (w *Watcher) addTable(b *nft.Batch, f nft.Family) {
	r0 := nft.R(0)
	b.AddTable()
	b.RemoveTable()
	b.AddTable()
	b.AddSet(nft.Set{Name: setWatched, KeyType: f.AddrType(), KeyLen: f.AddrLen(), Dynamic: true})
	b.AddChain(chainAnswer, nil)
	b.AddChain(chainReplies, nil)
	b.AddChain("prerouting", &nft.Hook{Type: "filter", Num: nft.Prerouting, Priority: nft.PriorityMangle})

	b.AddRule("prerouting", "", nft.NewRule().
		SrcAddr(f, r0).In(setWatched, r0).CtReply().Do(nft.Goto(chainReplies)))
	b.AddRule(chainReplies, "", nft.NewRule().CtDNAT().Do(nft.Goto(chainAnswer)))
	b.AddRule(chainReplies, "not a probe", nft.NewRule().DstNotLocal().Do(nft.Goto(chainAnswer)))
	tcp := nft.NewRule().L4Proto(r0).Cmp(nft.Eq, r0, []byte{6}).
		Payload(nft.TransportHeader, 13, 1, r0).
		Bitwise(r0, r0, []byte{8}, []byte{0}).Cmp(nft.Neq, r0, []byte{0}) // PSH
	udp := nft.NewRule().L4Proto(r0).Cmp(nft.Eq, r0, []byte{17})
	for _, r := range []*nft.Rule{tcp, udp} {
		b.AddRule(chainAnswer, "", r.Log(w.cfg.Group, 40).SrcAddr(f, r0).Forget(setWatched, r0))
	}
}
