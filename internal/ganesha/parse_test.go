package ganesha

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parsedBlock is a block as the strict parser reads it.
type parsedBlock struct {
	name    string
	options [][2]string
	blocks  []*parsedBlock
}

func (b *parsedBlock) value(t testing.TB, option string) string {
	t.Helper()
	found := ""
	for _, pair := range b.options {
		if strings.EqualFold(pair[0], option) {
			if found != "" {
				t.Fatalf("%s has %s twice", b.name, option)
			}
			found = pair[1]
		}
	}
	if found == "" {
		t.Fatalf("%s has no %s", b.name, option)
	}
	return found
}

func (b *parsedBlock) unquoted(t testing.TB, option string) string {
	t.Helper()
	value := b.value(t, option)
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		t.Fatalf("%s.%s is not quoted: %s", b.name, option, value)
	}
	return value[1 : len(value)-1]
}

// parse reads configuration text as ganesha's lexer does, but stricter: it knows no
// includes, no escapes and no single quotes, so whatever is not plainly ours fails.
func parse(text string) ([]*parsedBlock, error) {
	tokens, err := tokenize(text)
	if err != nil {
		return nil, err
	}
	root := &parsedBlock{}
	rest, err := parseBody(root, tokens, true)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 || len(root.options) > 0 {
		return nil, fmt.Errorf("text outside of blocks: %q", rest)
	}
	return root.blocks, nil
}

func tokenize(text string) ([]string, error) {
	var tokens []string
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == ' ' || c == '\n':
			i++
		case c == '#':
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return nil, fmt.Errorf("a comment without end")
			}
			i += end
		case strings.IndexByte("{}=;", c) >= 0:
			tokens = append(tokens, string(c))
			i++
		case c == '"':
			end := strings.IndexAny(text[i+1:], "\"\n\\")
			if end < 0 || text[i+1+end] != '"' {
				return nil, fmt.Errorf("a string without a plain end at byte %d", i)
			}
			tokens = append(tokens, text[i:i+end+2])
			i += end + 2
		default:
			end := strings.IndexAny(text[i:], " \n{}=;\"'\\#%$")
			if end <= 0 {
				return nil, fmt.Errorf("unexpected %q at byte %d", c, i)
			}
			tokens = append(tokens, text[i:i+end])
			i += end
		}
	}
	return tokens, nil
}

func parseBody(block *parsedBlock, tokens []string, top bool) ([]string, error) {
	for len(tokens) > 0 {
		switch {
		case tokens[0] == "}" && !top:
			return tokens[1:], nil
		case len(tokens) > 1 && tokens[1] == "{":
			child := &parsedBlock{name: tokens[0]}
			rest, err := parseBody(child, tokens[2:], false)
			if err != nil {
				return nil, err
			}
			block.blocks, tokens = append(block.blocks, child), rest
		case len(tokens) > 3 && tokens[1] == "=":
			end := slices.Index(tokens, ";")
			if end < 3 {
				return nil, fmt.Errorf("option %q without a value", tokens[0])
			}
			block.options = append(block.options, [2]string{tokens[0], strings.Join(tokens[2:end], " ")})
			tokens = tokens[end+1:]
		default:
			return nil, fmt.Errorf("unexpected %q", tokens[0])
		}
	}
	if !top {
		return nil, fmt.Errorf("block %q has no end", block.name)
	}
	return nil, nil
}

// assertReadsBack reads the text and compares all of it with the model: every value is where it belongs, and there is nothing else.
func assertReadsBack(t testing.TB, config Config, text string) {
	t.Helper()
	blocks, err := parse(text)
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var names []string
	for _, block := range blocks {
		names = append(names, block.name)
	}
	want := []string{"NFS_CORE_PARAM", "NFSv4", "NFS_KRB5", "EXPORT_DEFAULTS", "LOG"}
	for range config.Exports {
		want = append(want, "EXPORT")
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Fatalf("blocks: %s", diff)
	}
	nfsv4 := blocks[1]
	read := Config{
		Port: config.Port, MonitoringPort: config.MonitoringPort,
		ServerScope: nfsv4.unquoted(t, "Server_Scope"), ServerOwner: nfsv4.unquoted(t, "Server_Owner"),
		RecoveryRoot: nfsv4.unquoted(t, "RecoveryRoot"),
		LeaseSeconds: int32(number(t, nfsv4, "Lease_Lifetime")), GraceSeconds: int32(number(t, nfsv4, "Grace_Period")),
	}
	for i, options := range []int{11, 9, 1, 4, 1} {
		if len(blocks[i].options) != options || len(blocks[i].blocks) != 0 {
			t.Errorf("%s has %d options and %d blocks, not %d and none", blocks[i].name, len(blocks[i].options), len(blocks[i].blocks), options)
		}
	}
	for _, block := range blocks[5:] {
		read.Exports = append(read.Exports, readExport(t, block))
	}
	wanted := config
	wanted.Exports = nil
	for _, export := range config.Exports {
		copied := export
		copied.Clients = nil
		for _, client := range export.Clients {
			one := client
			one.Addresses = nil
			for _, prefix := range client.Addresses {
				one.Addresses = append(one.Addresses, canonical(prefix))
			}
			copied.Clients = append(copied.Clients, one)
		}
		wanted.Exports = append(wanted.Exports, copied)
	}
	slices.SortFunc(wanted.Exports, func(a, b Export) int { return int(a.ID) - int(b.ID) })
	if diff := cmp.Diff(wanted, read, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("what was read back differs from the model: %s", diff)
	}
}

func readExport(t testing.TB, block *parsedBlock) Export {
	t.Helper()
	if len(block.options) != 5 || block.value(t, "Access_Type") != "None" {
		t.Errorf("an export has other options than it should: %v", block.options)
	}
	id := number(t, block, "Export_Id")
	if want := fmt.Sprintf("1.%d", id); block.value(t, "Filesystem_Id") != want {
		t.Errorf("Filesystem_Id is %s, not %s", block.value(t, "Filesystem_Id"), want)
	}
	export := Export{ID: uint16(id), Path: block.unquoted(t, "Path"), Pseudo: block.unquoted(t, "Pseudo")}
	if len(block.blocks) == 0 || block.blocks[0].name != "FSAL" || block.blocks[0].value(t, "Name") != "VFS" || len(block.blocks[0].options) != 1 {
		t.Fatalf("an export has no plain FSAL block first")
	}
	for _, child := range block.blocks[1:] {
		if child.name != "CLIENT" || len(child.options) != 4 || len(child.blocks) != 0 {
			t.Fatalf("an export has a block that is no client rule: %+v", child)
		}
		client := Client{Access: Access(child.value(t, "Access_Type")), Squash: Squash(child.value(t, "Squash"))}
		for text := range strings.SplitSeq(child.value(t, "Clients"), ", ") {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				t.Fatal(err)
			}
			client.Addresses = append(client.Addresses, prefix)
		}
		export.Clients = append(export.Clients, client)
	}
	return export
}

func number(t testing.TB, block *parsedBlock, option string) uint64 {
	t.Helper()
	value, err := strconv.ParseUint(block.value(t, option), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func FuzzNoValueBecomesADirective(f *testing.F) {
	f.Add("scope", "owner", "/volumes/0/a", "/a/0", "10.0.0.0/8", "RW", "No_Root_Squash", uint16(1), int32(10))
	f.Add(`a"; }`, `a\`, "/volumes/0/a\"", "/a/0\n}", "0.0.0.0/0 ; }", "RW; x = y", "None", uint16(0), int32(-1))
	f.Add("a#b", "'", "/;{}=", "/%include \"x\"", "::/0", "RO", "All_Squash", uint16(65535), int32(120))
	f.Fuzz(func(t *testing.T, scope, owner, path, pseudo, from, access, squash string, id uint16, seconds int32) {
		config := Config{ServerScope: scope, ServerOwner: owner, LeaseSeconds: seconds, GraceSeconds: seconds, RecoveryRoot: path}
		export := Export{ID: id, Path: path, Pseudo: pseudo}
		if prefix, err := ParseAddress(from); err == nil {
			export.Clients = []Client{{[]netip.Prefix{prefix}, Access(access), Squash(squash)}}
		}
		config.Exports = []Export{export}
		text, err := Render(config)
		if err != nil {
			return
		}
		assertReadsBack(t, config, text)
	})
}
