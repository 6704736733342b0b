package pyfront_test

import (
	"os"
	"strings"
	"testing"

	"github.com/mscclsh/mscclsh/starlib"
	"github.com/mscclsh/mscclsh/starlib/pyfront"
)

// testdata/args.out holds what CPython's argparse makes of every command line.
func TestArgumentsAsArgparseReadsThem(t *testing.T) {
	source, err := os.ReadFile("testdata/args.py")
	if err != nil {
		t.Fatal(err)
	}
	cases, err := os.ReadFile("testdata/args.out")
	if err != nil {
		t.Fatal(err)
	}
	for c := range strings.SplitSeq(strings.TrimPrefix(string(cases), "$ "), "\n$ ") {
		line, want, _ := strings.Cut(strings.TrimSuffix(c, "\n"), "\n")
		got := load(t, string(source), strings.Fields(line)...)
		text := strings.TrimSuffix(got.out, "\n")
		if got.err != "" {
			first, _, _ := strings.Cut(got.err, "\n")
			text = strings.Replace(first, "script.py: ", "error: ", 1)
			if got.code != "bad-call" && got.code != "bad-value" {
				t.Errorf("%s: error code %s, want one of a wrong call", line, got.code)
			}
		}
		if text != want {
			t.Errorf("%s:\n got %s\nwant %s", line, text, want)
		}
	}
}

const argScript = `import argparse
p = argparse.ArgumentParser()
p.add_argument('num_gpus', type=int, help='number of gpus')
p.add_argument('--protocol', type=str, default='Simple', choices=['Simple', 'LL'], help='NCCL protocol')
p.add_argument('-i', '--instances', type=int, default=1)
p.add_argument('--inplace', action='store_true', help='one memory (default: %(default)s)')
args = p.parse_args()
print(args.num_gpus, args.protocol, args.instances, args.inplace)
`

func TestHelpShowsTheScriptsArguments(t *testing.T) {
	got := load(t, argScript, "--help")
	if got.code != "help" {
		t.Fatalf("error code %q: %s", got.code, got.err)
	}
	want := `usage: script.py [-h] [--protocol {Simple,LL}] [-i INSTANCES] [--inplace] num_gpus

positional arguments:
  num_gpus  number of gpus

options:
  -h, --help                 show this help
  --protocol {Simple,LL}     NCCL protocol (default: Simple)
  -i, --instances INSTANCES  (default: 1)
  --inplace                  one memory (default: False)`
	if usage := pyfront.Usage("script.py", got.script.Params); usage != want {
		t.Errorf("got\n%s\nwant\n%s", usage, want)
	}
}

func TestArgumentsAreParameters(t *testing.T) {
	got := load(t, argScript, "8", "-i", "2")
	var have []string
	for _, p := range got.script.Params {
		have = append(have, strings.Join([]string{p.Name, p.Type, p.Default, p.Value, strings.Join(p.Choices, "|"), p.Pos.String()}, ","))
		if p.Positional != (p.Name == "num_gpus") || p.Required != p.Positional || p.Given != (p.Name == "num_gpus" || p.Name == "instances") {
			t.Errorf("%s: positional %v, required %v, given %v", p.Name, p.Positional, p.Required, p.Given)
		}
	}
	want := "num_gpus,int,,8,,script.py:3:3 protocol,string,Simple,Simple,Simple|LL,script.py:4:3 " +
		"instances,int,1,2,,script.py:5:3 inplace,bool,False,False,,script.py:6:3"
	if strings.Join(have, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(have, " "), want)
	}
}

// Flags that the script doesn't declare are the tool's, where it has them.
func TestFlagsOfTheTool(t *testing.T) {
	var taken []string
	tool := func(words []string) int {
		switch words[0] {
		case "--emit":
			taken = append(taken, words[:2]...)
			return 2
		case "--quiet", "--tool.protocol=LL":
			taken = append(taken, words[0])
			return 1
		}
		return 0
	}
	for _, c := range []struct{ source, argv, out, taken, err string }{
		{argScript, "--quiet 8 --emit xml --tool.protocol=LL --protocol Simple", "8 Simple 1 False\n", "--quiet --emit xml --tool.protocol=LL", ""},
		{argScript, "8 --emt xml", "", "", "script.py: unrecognized arguments: --emt xml"},
		{"print(1)", "--emit xml 8", "1\n", "--emit xml", ""},
		{"print(1)", "--emt xml", "1\n", "", "script.py: unknown flag --emt\n    the script declares no flags"},
		{"import sys\nprint(sys.argv[1:])", "--emt xml", "['--emt', 'xml']\n", "", ""},
	} {
		taken = nil
		got := loadOptions(t, pyfront.Options{Options: starlib.Options{}, Argv: strings.Fields(c.argv), Tool: tool}, c.source)
		if got.out != c.out || strings.Join(taken, " ") != c.taken || !strings.HasPrefix(got.err, c.err) || c.err == "" && got.err != "" {
			t.Errorf("%s:\n got out %q, taken %q, error %q\nwant out %q, taken %q, error %q", c.argv, got.out, taken, got.err, c.out, c.taken, c.err)
		}
	}
}

func TestArgparseMisuse(t *testing.T) {
	const begin = "import argparse\np = argparse.ArgumentParser()\n"
	for _, c := range []struct{ source, want string }{
		{"p.add_argument()", "3:3: add_argument: got no name"},
		{"p.add_argument('a', '--b')", "3:3: add_argument: got a, --b, want one name, or flags that begin with a dash"},
		{"p.add_argument('--a', nargs=0)", "3:3: add_argument: nargs='0': beyond the Python that scripts may use here"},
		{"p.add_argument('--a', action='version')", "3:3: add_argument: action='version': beyond the Python that scripts may use here"},
		{"p.add_argument('--a', chioces=[1])", "3:3: add_argument: got unknown argument chioces"},
		{"p.add_argument('--a', type=3)", "3:3: add_argument: type: got int, want a type or a function"},
		{"p.add_argument('--a')\np.add_argument('-a', '--a')", "4:3: add_argument: --a was declared already"},
		{"p.add_argument('--a', action='store_true', type=bool)", "3:3: add_argument: a store_true takes no value: nargs, type and choices don't fit"},
		{"p.add_subparsers()", "3:3: ArgumentParser.add_subparsers: beyond the Python that scripts may use here"},
		{"p.add_argument('--chunks')\np.parse_args().chunk", "4:16: the arguments have no chunk\n    did you mean chunks?"},
		{"p.error('too few')", "script.py: too few\n    usage: script.py [-h]"},
	} {
		want := "script.py:" + c.want
		if strings.HasPrefix(c.want, "script.py") {
			want = c.want
		}
		if got := load(t, begin+c.source).err; got != want {
			t.Errorf("%q:\n got %s\nwant %s", c.source, got, want)
		}
	}
}
