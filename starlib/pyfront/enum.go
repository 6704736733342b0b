package pyfront

import (
	"fmt"

	"go.starlark.net/starlark"
)

// enumBase is enum.Enum.
var enumBase = &class{name: "Enum", base: objectClass, fields: starlark.StringDict{}}

// autoValue is what enum.auto() returns: one more than the value before.
type autoValue struct{}

func (autoValue) String() string        { return "auto()" }
func (autoValue) Type() string          { return "auto" }
func (autoValue) Freeze()               {}
func (autoValue) Truth() starlark.Bool  { return true }
func (autoValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable type: auto") }

func (c *class) isEnum() bool { return c != enumBase && c.within(enumBase) }

// enumerate makes members of the fields of a new Enum that are no functions. Two
// names of one value are one member.
func (c *class) enumerate(pairs starlark.Iterable) error {
	c.members = []*instance{}
	next := starlark.MakeInt(1)
	for pair := range starlark.Elements(pairs) {
		p := pair.(starlark.Tuple)
		name, v := pyStr(p[0]), c.fields[pyStr(p[0])]
		switch v.(type) {
		case *starlark.Function, staticMethod, ofClass, property:
			continue
		case autoValue:
			v = next
		}
		if name[0] == '_' {
			continue
		}
		if n, ok := v.(starlark.Int); ok {
			next = n.Add(starlark.MakeInt(1))
		}
		m, err := c.withValue(v)
		if err != nil {
			return err
		}
		if m == nil {
			*c.ids++
			m = &instance{class: c, id: *c.ids, fields: starlark.StringDict{"name": starlark.String(name), "value": v}, made: true}
			c.members = append(c.members, m)
		}
		c.fields[name] = m
	}
	return nil
}

// withValue is the member of that value, or nil.
func (c *class) withValue(v starlark.Value) (*instance, error) {
	for _, m := range c.members {
		same, err := starlark.Equal(m.fields["value"], v)
		if err != nil || same {
			return m, err
		}
	}
	return nil, nil
}

// member is Color(value).
func (c *class) member(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var v starlark.Value
	if err := starlark.UnpackPositionalArgs(c.name, args, kwargs, 1, &v); err != nil {
		return nil, err
	}
	if x, ok := v.(*instance); ok && x.class == c {
		return x, nil
	}
	m, err := c.withValue(v)
	if err == nil && m == nil {
		err = fmt.Errorf("%s is no value of %s", pyRepr(v), c.name)
	}
	return m, err
}

// Get is Color["name"].
func (c *class) Get(k starlark.Value) (starlark.Value, bool, error) {
	if !c.isEnum() {
		return nil, false, fmt.Errorf("class %s has no elements", c.name)
	}
	name, _ := starlark.AsString(k)
	m, ok := c.fields[name].(*instance)
	return m, ok && m.class == c, nil
}

// memberName is a member as str shows it.
func (x *instance) memberName() string {
	return x.class.name + "." + pyStr(x.fields["name"])
}
