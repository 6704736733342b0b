package layering

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mscclsh/mscclsh/"

// rules says what each package may import of this module and from outside the
// standard library; a name ending in / stands for everything below it. A package
// that isn't here is an error, so that a new one has to find its place.
var rules = map[string][]string{
	"internal/diag":     {},
	"ir":                {"internal/diag", "gonum.org/v1/gonum/graph"},
	"ir/mscclxml":       {"ir", "internal/diag"},
	"ir/plan":           {"ir", "internal/diag"},
	"trace":             {"ir", "internal/diag"},
	"starlib":           {"trace", "ir", "internal/diag", "go.starlark.net/"},
	"starlib/pyfront":   {"starlib", "trace", "ir", "internal/diag", "go.starlark.net/"},
	"compiler":          {"ir", "internal/diag"},
	"checker":           {"ir", "internal/diag", "gonum.org/v1/gonum/graph/"},
	"machine":           {"ir", "internal/diag"},
	"runtime":           {"ir", "internal/diag", "machine"},
	"runtime/cpu":       {"runtime", "ir", "internal/diag", "machine"},
	"runtime/sim":       {"ir", "internal/diag"},
	"runtime/cuda":      {"runtime", "ir", "internal/diag", "github.com/ebitengine/purego"},
	"table":             {"runtime", "runtime/cuda", "ir", "internal/diag"},
	"viz":               {"ir", "internal/diag", "github.com/charmbracelet/lipgloss"},
	"algorithms":        {},
	"tutorials":         {},
	"internal/randprog": {"trace", "ir", "internal/diag"},
	"internal/layering": {},
	"internal/benchcmd": {},
	"internal/endtoend": {},
	"internal/proof":    {},
	"internal/sarif":    {"internal/diag"},
	"internal/notebook": {"internal/diag"},
	"internal/handed":   {},
	"internal/lsp":      {"starlib", "internal/diag", "go.starlark.net/"},
	"internal/jupyter":  {"github.com/go-zeromq/zmq4"},

	"internal/jupyter/jupytertest": {"internal/jupyter", "github.com/go-zeromq/zmq4"},
	"cmd/mscclsh": {"internal/diag", "internal/jupyter", "internal/lsp", "internal/sarif", "ir", "ir/mscclxml", "ir/plan", "starlib", "starlib/pyfront", "compiler", "checker", "machine", "runtime",
		"runtime/cpu", "runtime/sim", "runtime/cuda", "table", "viz", "algorithms", "tutorials", "internal/notebook", "github.com/charmbracelet/lipgloss", "github.com/chzyer/readline", "github.com/mattn/go-isatty",
		"github.com/spf13/cobra", "github.com/spf13/pflag"},
}

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
}

// list runs go list -deps over the whole module.
func list(t *testing.T) map[string]*listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-e", "-json=ImportPath,Standard,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := make(map[string]*listed)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &listed{}
		err := dec.Decode(p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading go list's answer: %v", err)
		}
		packages[p.ImportPath] = p
	}
}

func allowed(rule []string, path string) bool {
	return slices.ContainsFunc(rule, func(r string) bool {
		return path == r || strings.HasSuffix(r, "/") && strings.HasPrefix(path, r)
	})
}

func TestImports(t *testing.T) {
	packages := list(t)
	for path, p := range packages {
		name, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		rule, known := rules[name]
		if !known {
			t.Errorf("package %s is not in the table of rules", name)
			continue
		}
		for _, imp := range p.Imports {
			if q := packages[imp]; q == nil || q.Standard {
				continue
			}
			if short := strings.TrimPrefix(imp, module); !allowed(rule, short) {
				t.Errorf("package %s must not import %s", name, short)
			}
		}
	}
}

// What a package reaches through others counts too: the language, the passes and
// the checker must stay usable without a terminal, a runtime or one another.
func TestReach(t *testing.T) {
	packages := list(t)
	for _, name := range []string{"trace", "compiler", "checker", "viz", "runtime", "runtime/cpu", "runtime/sim", "runtime/cuda", "starlib"} {
		p := packages[module+name]
		if p == nil {
			t.Errorf("package %s is not there", name)
			continue
		}
		for _, dep := range p.Deps {
			short := strings.TrimPrefix(dep, module)
			first, _, _ := strings.Cut(short, "/")
			independent := slices.Contains([]string{"trace", "compiler", "checker", "viz", "runtime"}, first)
			own, _, _ := strings.Cut(name, "/")
			switch {
			case short == dep: // not ours
				if strings.HasPrefix(dep, "github.com/spf13/") {
					t.Errorf("package %s reaches %s", name, dep)
				}
			case strings.HasPrefix(short, "cmd/"), short == "starlib":
				t.Errorf("package %s reaches %s", name, short)
			case independent && first != own && !(name == "starlib" && first == "trace"):
				t.Errorf("package %s reaches %s", name, short)
			}
		}
	}
}

// Every direct dependency has its reason in docs/dependencies.md.
func TestDependenciesHaveReasons(t *testing.T) {
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+/\S+) v\S+( // indirect)?$`)
	for _, m := range line.FindAllStringSubmatch(string(mod), -1) {
		if m[2] == "" && !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/dependencies.md gives no reason for %s", m[1])
		}
	}
}

// Files stay short enough to be read at a sitting.
func TestFileLength(t *testing.T) {
	const limit = 600
	out, err := exec.Command("git", "-C", "../..", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	for _, f := range strings.Fields(string(out)) {
		text, err := os.ReadFile("../../" + f)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "\n"); n > limit {
			t.Errorf("%s has %d lines; split it (%d at most)", f, n, limit)
		}
	}
}
