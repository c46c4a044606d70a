package iptables

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/periplus/periplus/proxy"
)

const comment = "-m comment --comment"

// jumps are the rules in the kernel's own chains, in order: each is put at the
// head of its chain.
var jumps = map[string][]string{
	"nat": {
		`PREROUTING ` + comment + ` "kubernetes service portals" -j ` + chainServices,
		`OUTPUT ` + comment + ` "kubernetes service portals" -j ` + chainServices,
		`POSTROUTING ` + comment + ` "kubernetes postrouting rules" -j ` + chainPostrouting,
	},
	"filter": {
		`INPUT -m conntrack --ctstate NEW ` + comment + ` "kubernetes externally-visible service portals" -j ` + chainExternal,
		`FORWARD -m conntrack --ctstate NEW ` + comment + ` "kubernetes externally-visible service portals" -j ` + chainExternal,
		`FORWARD -m conntrack --ctstate NEW ` + comment + ` "kubernetes service portals" -j ` + chainServices,
		`OUTPUT -m conntrack --ctstate NEW ` + comment + ` "kubernetes service portals" -j ` + chainServices,
		`FORWARD ` + comment + ` "kubernetes forwarding rules" -j ` + chainForward,
		`INPUT -m conntrack --ctstate NEW ` + comment + ` "kubernetes load balancer firewall" -j ` + chainFirewall,
		`OUTPUT -m conntrack --ctstate NEW ` + comment + ` "kubernetes load balancer firewall" -j ` + chainFirewall,
		`FORWARD -m conntrack --ctstate NEW ` + comment + ` "kubernetes load balancer firewall" -j ` + chainFirewall,
	},
}

// fixed are the chains of each table that are always there.
var fixed = map[string][]string{
	"nat":    {chainServices, chainNodePorts, chainPostrouting, chainMarkMasq},
	"filter": {chainServices, chainExternal, chainForward, chainFirewall},
}

// missingJumps are those that a saved table does not have.
func missingJumps(table string, saved []byte) []string {
	have := map[string]bool{}
	for line := range strings.Lines(string(saved)) {
		if chain, target, ok := jump(line); ok {
			have[chain+" "+target] = true
		}
	}
	var out []string
	for _, j := range jumps[table] {
		chain, target, _ := jump("-A " + j)
		if !have[chain+" "+target] {
			out = append(out, j)
		}
	}
	return out
}

// jump is the chain and the target of a rule.
func jump(line string) (chain, target string, ok bool) {
	f := strings.Fields(line)
	i := slices.Index(f, "-j")
	if len(f) < 2 || f[0] != "-A" || i < 0 || i+1 >= len(f) {
		return "", "", false
	}
	return f[1], f[i+1], true
}

// portChains are the chains of ports and endpoints in a saved table.
func portChains(saved []byte) []string {
	var out []string
	for line := range strings.Lines(string(saved)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, ":"), " ")
		if strings.HasPrefix(line, ":") && isPortChain(name) {
			out = append(out, name)
		}
	}
	return out
}

func isPortChain(name string) bool {
	for _, p := range []string{prefixCluster, prefixLocal, prefixExternal, prefixSources, prefixEndpoint} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// text is input for iptables-restore.
type text struct{ bytes.Buffer }

func (t *text) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *text) lines(lines []string) {
	for _, l := range lines {
		t.line("%s", l)
	}
}

// declare empties chains, and makes those that are not there.
func (t *text) declare(chains []string) {
	for _, c := range chains {
		t.line(":%s - [0:0]", c)
	}
}

// nat writes the table: changed blocks whole, of the others their entrances.
func nat(t *text, c proxy.BackendConfig, all, changed []*block, gone, insert []string) {
	t.line("*nat")
	t.declare(fixed["nat"])
	for _, b := range changed {
		t.declare(b.chains)
	}
	t.declare(gone)
	for _, j := range slices.Backward(insert) {
		t.line("-I %s", j)
	}
	t.line("-A %s -j MARK --or-mark 0x4000", chainMarkMasq)
	t.line("-A %s -m mark ! --mark 0x4000/0x4000 -j RETURN", chainPostrouting)
	t.line("-A %s -j MARK --xor-mark 0x4000", chainPostrouting)
	t.line(`-A %s %s "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully`, chainPostrouting, comment)
	for _, b := range all {
		t.lines(b.services)
		t.lines(b.nodePort)
	}
	for _, b := range changed {
		t.lines(b.rules)
	}
	not := "! -d 127.0.0.0/8"
	if c.IPv6 {
		not = "! -d ::1/128"
	}
	t.line(`-A %s %s "kubernetes service nodeports; NOTE: this must be the last rule in this chain" %s -m addrtype --dst-type LOCAL -j %s`,
		chainServices, comment, not, chainNodePorts)
	for _, g := range gone {
		t.line("-X %s", g)
	}
	t.line("COMMIT")
}

// filter writes the table; it holds only what refuses.
func filter(t *text, c proxy.BackendConfig, all []*block, insert []string) {
	t.line("*filter")
	t.declare(fixed["filter"])
	for _, j := range slices.Backward(insert) {
		t.line("-I %s", j)
	}
	for _, b := range all {
		t.lines(b.refused)
		t.lines(b.external)
		t.lines(b.firewall)
	}
	for _, r := range c.ServiceCIDRs {
		for _, refuse := range []string{"-p tcp -j REJECT --reject-with tcp-reset", "-j REJECT"} {
			t.line(`-A %s %s "no such service" -d %s -m addrtype ! --dst-type LOCAL %s`, chainServices, comment, r, refuse)
		}
	}
	t.line("-A %s -m conntrack --ctstate INVALID -j DROP", chainForward)
	t.line(`-A %s %s "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT`, chainForward, comment)
	t.line(`-A %s %s "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`, chainForward, comment)
	t.line("COMMIT")
}

// without removes what a table has of ours.
func without(t *text, table string, saved []byte) {
	t.line("*%s", table)
	chains := slices.Concat(fixed[table], portChains(saved))
	t.declare(chains)
	for line := range strings.Lines(string(saved)) {
		chain, target, ok := jump(line)
		if ok && !slices.Contains(chains, chain) && slices.Contains(fixed[table], target) {
			t.line("-D%s", strings.TrimPrefix(strings.TrimSpace(line), "-A"))
		}
	}
	for _, c := range chains {
		t.line("-X %s", c)
	}
	t.line("COMMIT")
}

// hasChain says whether a saved table has a chain.
func hasChain(saved []byte, name string) bool {
	return bytes.Contains(saved, []byte("\n:"+name+" "))
}

// isEmpty says whether a saved table is one of nf_tables that has only the
// kernel's chains, with no rule and the policy to accept.
func isEmpty(saved []byte) bool {
	if !bytes.Contains(saved, []byte("(nf_tables)")) {
		return false
	}
	for line := range strings.Lines(string(saved)) {
		if strings.HasPrefix(line, "-A") || strings.HasPrefix(line, ":") && !strings.Contains(line, " ACCEPT ") {
			return false
		}
	}
	return true
}
