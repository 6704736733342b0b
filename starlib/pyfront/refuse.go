package pyfront

import "github.com/mscclsh/mscclsh/internal/diag"

// refusal says that a construct of Python's is beyond this front end.
func refusal(pos diag.Pos, construct, instead string) *diag.Message {
	m := diag.Errorf(pos, "python", "%s: beyond the Python that scripts may use here", construct)
	if instead != "" {
		m.Suggest("%s", instead)
	}
	return m
}

// refusedStatements are the statements that scripts may not use, by their
// keyword, and what does the same.
var refusedStatements = map[string][2]string{
	"try":      {"try", "a script can't catch errors; test first what could fail"},
	"except":   {"except", ""},
	"finally":  {"finally", ""},
	"async":    {"async", ""},
	"await":    {"await", ""},
	"global":   {"global", "return the value from the function, or keep it in a list or a dict"},
	"nonlocal": {"nonlocal", "return the value from the function, or keep it in a list or a dict"},
}

// refusedExpressions are likewise those that begin an expression.
var refusedExpressions = map[string][2]string{
	"yield": {"yield", "return a list"},
	"await": {"await", ""},
}

// keywords can't be names.
var keywords = map[string]bool{
	"False": true, "None": true, "True": true, "and": true, "as": true, "assert": true, "async": true, "await": true,
	"break": true, "class": true, "continue": true, "def": true, "del": true, "elif": true, "else": true, "except": true,
	"finally": true, "for": true, "from": true, "global": true, "if": true, "import": true, "in": true, "is": true,
	"lambda": true, "nonlocal": true, "not": true, "or": true, "pass": true, "raise": true, "return": true, "try": true,
	"while": true, "with": true, "yield": true,
}

// Limits that keep a nonsensical text from exhausting the stack.
const (
	maxNesting = 100    // open brackets, and open blocks
	maxDepth   = 400    // expressions within expressions
	maxChain   = 10_000 // operators, calls or branches one after another
)
