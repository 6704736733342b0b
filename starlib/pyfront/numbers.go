package pyfront

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// mathExtras are the functions of Python's math that Starlark's has not.
var mathExtras = map[string]native{
	"gcd": func(args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
		total := new(big.Int)
		for _, a := range args {
			n, ok := a.(starlark.Int)
			if !ok {
				return nil, fmt.Errorf("gcd: got %s, want int", a.Type())
			}
			total.GCD(nil, nil, total, new(big.Int).Abs(n.BigInt()))
		}
		return starlark.MakeBigInt(total), nil
	},
	"isqrt": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var n starlark.Int
		if err := starlark.UnpackPositionalArgs("isqrt", args, kwargs, 1, &n); err != nil {
			return nil, err
		}
		if n.Sign() < 0 {
			return nil, fmt.Errorf("isqrt: got %s, want 0 or more", n)
		}
		return starlark.MakeBigInt(new(big.Int).Sqrt(n.BigInt())), nil
	},
	"trunc": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x starlark.Value
		if err := starlark.UnpackPositionalArgs("trunc", args, kwargs, 1, &x); err != nil {
			return nil, err
		}
		return starlark.NumberToInt(x)
	},
	"prod": func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var list starlark.Iterable
		var total starlark.Value = starlark.MakeInt(1)
		if err := starlark.UnpackArgs("prod", args, kwargs, "iterable", &list, "start?", &total); err != nil {
			return nil, err
		}
		for v := range starlark.Elements(list) {
			var err error
			if total, err = starlark.Binary(syntax.STAR, total, v); err != nil {
				return nil, err
			}
		}
		return total, nil
	},
}

func floatPower(x, y starlark.Value) (starlark.Value, error) {
	a, _ := starlark.AsFloat(x)
	b, _ := starlark.AsFloat(y)
	z := math.Pow(a, b)
	switch {
	case a == 0 && b < 0:
		return nil, fmt.Errorf("pow: 0 to a negative power")
	case math.IsNaN(z) && !math.IsNaN(a) && !math.IsNaN(b):
		return nil, fmt.Errorf("pow: a negative number to a power that is no integer")
	}
	return starlark.Float(z), nil
}

// round is Python's: halves go to the even neighbor.
func round(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	var digits starlark.Value = starlark.None
	if err := starlark.UnpackArgs("round", args, kwargs, "number", &x, "ndigits?", &digits); err != nil {
		return nil, err
	}
	if !isNumber(x) {
		return nil, fmt.Errorf("round: got %s, want a number", x.Type())
	}
	f, isFloat := x.(starlark.Float)
	if digits == starlark.None {
		if !isFloat {
			return x, nil
		}
		return starlark.NumberToInt(starlark.Float(math.RoundToEven(float64(f))))
	}
	n, err := starlark.AsInt32(digits)
	if err != nil || n < 0 || n > 300 {
		return nil, fmt.Errorf("round: ndigits: got %s, want 0 to 300", digits)
	}
	if !isFloat {
		return x, nil
	}
	// Formatting rounds the exact binary value, as Python does.
	var y float64
	if _, err := fmt.Sscan(fmt.Sprintf("%.*f", n, float64(f)), &y); err != nil {
		return x, nil // infinite or no number
	}
	return starlark.Float(y), nil
}

// inBase is hex, oct or bin.
func inBase(prefix string, base int) native {
	return func(args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var n starlark.Int
		if err := starlark.UnpackPositionalArgs("hex, oct or bin", args, kwargs, 1, &n); err != nil {
			return nil, err
		}
		text, minus := strings.CutPrefix(n.BigInt().Text(base), "-")
		if minus {
			return starlark.String("-" + prefix + text), nil
		}
		return starlark.String(prefix + text), nil
	}
}
