package pyfront

import (
	"fmt"

	"go.starlark.net/starlark"
)

// typingNames are names of the module typing. They say nothing to a script that
// runs: annotations are not looked at, and an alias such as Dict[int, str] is as
// good as any other.
var typingNames = []string{"Any", "Callable", "Dict", "Final", "FrozenSet", "Generator", "Iterable", "Iterator", "List", "Literal",
	"Mapping", "Optional", "Sequence", "Set", "Tuple", "Type", "Union"}

// typing is a name of the module typing, or what became of it in brackets.
type typing string

var _ starlark.Mapping = typing("")

func (t typing) String() string        { return "typing." + string(t) }
func (t typing) Type() string          { return "type" }
func (t typing) Freeze()               {}
func (t typing) Truth() starlark.Bool  { return true }
func (t typing) Hash() (uint32, error) { return starlark.String(t).Hash() }

// Get is the name with something in brackets behind it.
func (t typing) Get(k starlark.Value) (starlark.Value, bool, error) {
	return typing(fmt.Sprintf("%s[%s]", string(t), pyRepr(k))), true, nil
}
