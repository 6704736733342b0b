package pyfront

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// tableSize is how many places CPython's set of n elements has at least, when
// they were added one by one: it grows fourfold once three fifths are taken.
func tableSize(n int) int64 {
	size := int64(8)
	for int64(n)*5 >= (size-1)*3 {
		size *= 4
	}
	return size
}

// ordered is what iterating over v goes through. CPython goes over a set by the
// places in its table. Numbers that are smaller than the table stand at their own
// places, so that they come in ascending order; of all others the order is
// nothing that a script can count on, and here it is that of their making.
func ordered(v starlark.Value) starlark.Value {
	s, ok := v.(*starlark.Set)
	if !ok || s.Len() < 2 {
		return v
	}
	list := slices.Collect(starlark.Elements(s))
	size := tableSize(len(list))
	for _, x := range list {
		n, isInt := x.(starlark.Int)
		if !isInt {
			return v
		}
		if k, fits := n.Int64(); !fits || k < 0 || k >= size {
			return v
		}
	}
	slices.SortFunc(list, func(a, b starlark.Value) int {
		n, _ := a.(starlark.Int).Cmp(b.(starlark.Int), 0) // numbers always compare
		return n
	})
	return starlark.NewList(list)
}

// iterated is what a loop goes over.
func iterated(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return ordered(args[0]), nil
}

// inOrder is a function of Starlark's that goes over its arguments.
func (r *run) inOrder(name string) native {
	fn := starlark.Universe[name]
	return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		given := make(starlark.Tuple, len(args))
		for i, a := range args {
			given[i] = ordered(a)
		}
		return starlark.Call(r.env.Thread(), fn, given, kwargs)
	}
}

// setMethod is a method of sets that Starlark's lack, or do otherwise.
func setMethod(s *starlark.Set, name string) native {
	switch name {
	case "pop":
		return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
			if err := starlark.UnpackPositionalArgs("pop", args, kwargs, 0); err != nil {
				return nil, err
			}
			for x := range starlark.Elements(ordered(s).(starlark.Iterable)) {
				_, err := s.Delete(x)
				return x, err
			}
			return nil, fmt.Errorf("pop: the set is empty")
		}
	case "copy":
		return func(starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
			c := starlark.NewSet(s.Len())
			for x := range starlark.Elements(s) {
				if err := c.Insert(x); err != nil {
					return nil, err
				}
			}
			return c, nil
		}
	}
	return nil
}
