package main

import "strings"

// scriptArg is one flag as it stands after the script's name.
type scriptArg struct {
	name  string // without dashes and without "tool."
	tool  bool   // --tool.NAME, or a short flag: never the script's
	value string
	bare  bool // no value stood there
}

// flag is the argument as the user wrote it, without its value.
func (a *scriptArg) flag() string {
	if a.tool {
		return "--tool." + a.name
	}
	return "--" + a.name
}

// splitScriptArgs reads what follows the script: --name value, --name=value,
// --name alone, and the tool's short flags. Whether a name is the script's can
// only be said once the script has run, so a value is whatever follows that
// doesn't start like a flag; the tool's own flags without a value never take one.
func splitScriptArgs(args []string, tool []toolFlag) ([]scriptArg, error) {
	var out []scriptArg
	for i := 0; i < len(args); i++ {
		text := args[i]
		a, attached, err := oneScriptArg(text, tool)
		if err != nil {
			return nil, err
		}
		if a.tool && findFlag(tool, a.name) == nil {
			return nil, unknownFlag(&a, tool, nil)
		}
		switch {
		case attached:
		case a.tool && !takesValue(tool, a.name), i+1 == len(args), isFlag(args[i+1]):
			a.bare = true
		default:
			i++
			a.value = args[i]
		}
		out = append(out, a)
	}
	return out, nil
}

// oneScriptArg reads one word; attached tells whether it holds its value too.
func oneScriptArg(text string, tool []toolFlag) (a scriptArg, attached bool, err error) {
	long, isLong := strings.CutPrefix(text, "--")
	switch {
	case isLong && long != "" && long[0] != '=':
		a.name, a.value, attached = strings.Cut(long, "=")
		a.name, a.tool = strings.CutPrefix(a.name, "tool.")
		return a, attached, nil
	case !isLong && len(text) > 1 && text[0] == '-':
		for i := range tool {
			if tool[i].Short != text[1:2] {
				continue
			}
			a = scriptArg{name: tool[i].Name, tool: true, value: strings.TrimPrefix(text[2:], "=")}
			if a.value != "" && !tool[i].takesValue() {
				return a, false, badCall("unknown-flag", "unknown flag %s", text)
			}
			return a, a.value != "", nil
		}
		return a, false, badCall("unknown-flag", "unknown flag %s", text)
	}
	return a, false, badCallHint("unexpected-argument",
		"parameters of the script are flags: --name value", "unexpected argument %q", text)
}

// isFlag reports whether the word starts a flag; a negative number doesn't.
func isFlag(s string) bool {
	return len(s) > 1 && s[0] == '-' && (s[1] < '0' || s[1] > '9') && s[1] != '.'
}

func takesValue(tool []toolFlag, name string) bool {
	f := findFlag(tool, name)
	return f != nil && f.takesValue()
}

func findFlag(tool []toolFlag, name string) *toolFlag {
	for i := range tool {
		if tool[i].Name == name {
			return &tool[i]
		}
	}
	return nil
}

// scriptValues are the arguments that might be the script's own, by name; a
// flag without a value is "true". The same name twice is an error, unless it is
// a flag of the tool that may be repeated.
func scriptValues(args []scriptArg, tool []toolFlag) (map[string]string, error) {
	values := make(map[string]string)
	for i := range args {
		a := &args[i]
		if a.tool {
			continue
		}
		value := a.value
		if a.bare {
			value = "true"
		}
		f := findFlag(tool, a.name)
		if _, twice := values[a.name]; twice && (f == nil || !f.Repeats) {
			return nil, badCall("repeated-flag", "--%s is given twice", a.name)
		}
		values[a.name] = value
	}
	return values, nil
}

// applyToolArgs sets the tool's flags among args: those named tool., and those
// that no param of the script shadows. Others than the script's are errors.
func applyToolArgs(set *Settings, args []scriptArg, tool []toolFlag, params []string) error {
	known := make(map[string]bool)
	for _, p := range params {
		known[p] = true
	}
	for i := range args {
		a := &args[i]
		if !a.tool && known[a.name] {
			continue
		}
		f := findFlag(tool, a.name)
		if f == nil {
			return unknownFlag(a, tool, params)
		}
		if err := setToolFlag(set, f, a); err != nil {
			return err
		}
	}
	return nil
}

func setToolFlag(set *Settings, f *toolFlag, a *scriptArg) error {
	value := a.value
	switch {
	case a.bare && f.takesValue():
		return badCall("flag-value", "%s needs a value: %s %s", a.flag(), a.flag(), f.Arg)
	case a.bare:
		value = "true"
	case !f.takesValue() && value != "true" && value != "false":
		return badCall("unexpected-argument", "unexpected argument %q after %s, which takes no value", value, a.flag())
	}
	if err := f.set(set, value); err != nil {
		return badCall("flag-value", "%s: %s", a.flag(), strings.TrimPrefix(err.Error(), f.Name+": "))
	}
	return nil
}

// unknownFlag names the flag nobody knows and the one that was probably meant.
func unknownFlag(a *scriptArg, tool []toolFlag, params []string) error {
	candidates := append([]string(nil), params...)
	for i := range tool {
		candidates = append(candidates, tool[i].Name)
	}
	hint := didYouMean(a.name, candidates, strings.TrimSuffix(a.flag(), a.name))
	if hint == "" {
		hint = "mscclsh SCRIPT --help lists the script's parameters, mscclsh --help the tool's flags"
		if a.tool {
			hint = "mscclsh --help lists the tool's flags"
		}
	}
	return badCallHint("unknown-flag", hint, "unknown flag %s", a.flag())
}

// missingValue finds a flag of the script that stands without the value that it
// needs. kinds gives the type of each param.
func missingValue(args []scriptArg, kinds map[string]string) error {
	for i := range args {
		a := &args[i]
		kind, isParam := kinds[a.name]
		if a.bare && !a.tool && isParam && kind != "bool" {
			return badCall("flag-value", "%s needs a value: %s %s", a.flag(), a.flag(), strings.ToUpper(kind))
		}
	}
	return nil
}
