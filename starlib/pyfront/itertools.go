package pyfront

import (
	"fmt"
	"slices"

	"go.starlark.net/starlark"
)

// maxTuples bounds what product, permutations and combinations make: they are
// lists here.
const maxTuples = 1 << 19

// itertools are the functions of the module, but for accumulate.
var itertools = map[string]native{
	"chain": func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		lists, err := elementsOf("chain", args)
		return starlark.NewList(slices.Concat(lists...)), err
	},
	"repeat": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x starlark.Value
		var n int
		if err := starlark.UnpackArgs("repeat", args, kwargs, "object", &x, "times", &n); err != nil {
			return nil, err
		}
		if n > maxTuples {
			return nil, fmt.Errorf("repeat: got %d times, want at most %d", n, maxTuples)
		}
		return starlark.NewList(slices.Repeat([]starlark.Value{x}, max(n, 0))), nil
	},
	"zip_longest": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var fill starlark.Value = starlark.None
		if err := starlark.UnpackArgs("zip_longest", nil, kwargs, "fillvalue?", &fill); err != nil {
			return nil, err
		}
		lists, err := elementsOf("zip_longest", args)
		if err != nil {
			return nil, err
		}
		most := 0
		for _, l := range lists {
			most = max(most, len(l))
		}
		rows := make([]starlark.Value, most)
		for i := range rows {
			row := make(starlark.Tuple, len(lists))
			for k, l := range lists {
				row[k] = fill
				if i < len(l) {
					row[k] = l[i]
				}
			}
			rows[i] = row
		}
		return starlark.NewList(rows), nil
	},
	"product": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		times := 1
		if err := starlark.UnpackArgs("product", nil, kwargs, "repeat?", &times); err != nil {
			return nil, err
		}
		lists, err := elementsOf("product", args)
		if err != nil {
			return nil, err
		}
		if times < 0 || times > 64 {
			return nil, fmt.Errorf("product: repeat: got %d, want 0 to 64", times)
		}
		return product(slices.Repeat(lists, times))
	},
	"permutations": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return arrangements("permutations", args, kwargs, func(chosen []int, next int) bool { return !slices.Contains(chosen, next) })
	},
	"combinations": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		return arrangements("combinations", args, kwargs, func(chosen []int, next int) bool {
			return len(chosen) == 0 || next > chosen[len(chosen)-1]
		})
	},
}

func elementsOf(name string, args starlark.Tuple) ([][]starlark.Value, error) {
	lists := make([][]starlark.Value, len(args))
	for i, a := range args {
		it, ok := ordered(a).(starlark.Iterable)
		if !ok {
			return nil, fmt.Errorf("%s: got %s, want a list", name, a.Type())
		}
		lists[i] = slices.Collect(starlark.Elements(it))
	}
	return lists, nil
}

// product is every choice of one element of each list, the last list's changing
// fastest.
func product(lists [][]starlark.Value) (starlark.Value, error) {
	rows := []starlark.Value{starlark.Tuple{}}
	for _, l := range lists {
		if len(rows)*max(len(l), 1) > maxTuples {
			return nil, fmt.Errorf("product: more than %d tuples", maxTuples)
		}
		var longer []starlark.Value
		for _, row := range rows {
			for _, v := range l {
				longer = append(longer, append(slices.Clone(row.(starlark.Tuple)), v))
			}
		}
		rows = longer
	}
	return starlark.NewList(rows), nil
}

// arrangements are the choices of r elements where each may follow those chosen
// before it, in the order of the elements.
func arrangements(name string, args starlark.Tuple, kwargs []starlark.Tuple, may func(chosen []int, next int) bool) (starlark.Value, error) {
	var list starlark.Iterable
	var count starlark.Value = starlark.None
	if err := starlark.UnpackArgs(name, args, kwargs, "iterable", &list, "r?", &count); err != nil {
		return nil, err
	}
	pool := slices.Collect(starlark.Elements(ordered(list).(starlark.Iterable)))
	r := len(pool)
	if n, err := starlark.AsInt32(count); err == nil {
		r = n
	} else if name == "combinations" || count != starlark.None {
		return nil, fmt.Errorf("%s: r: got %s, want int", name, count.Type())
	}
	if r < 0 {
		return nil, fmt.Errorf("%s: r: got %d, want 0 or more", name, r)
	}
	rows := [][]int{{}}
	for range min(r, len(pool)+1) {
		var longer [][]int
		for _, row := range rows {
			for i := range pool {
				if may(row, i) {
					longer = append(longer, append(slices.Clone(row), i))
				}
			}
			if len(longer) > maxTuples {
				return nil, fmt.Errorf("%s: more than %d tuples", name, maxTuples)
			}
		}
		rows = longer
	}
	out := make([]starlark.Value, len(rows))
	for i, row := range rows {
		t := make(starlark.Tuple, len(row))
		for k, j := range row {
			t[k] = pool[j]
		}
		out[i] = t
	}
	return starlark.NewList(out), nil
}
