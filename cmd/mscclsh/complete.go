package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mscclsh/mscclsh/starlib"
)

// completion prints the shell's completion script.
func (s *Session) completion(shell string) error {
	root := newRoot(NewSession(io.Discard, io.Discard))
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(s.Out, true)
	case "zsh":
		return root.GenZshCompletion(s.Out)
	case "fish":
		return root.GenFishCompletion(s.Out, true)
	}
	return root.GenPowerShellCompletionWithDesc(s.Out)
}

// complete proposes what may stand after args: a script and its parameters, or
// the command's own values.
func (c *command) complete(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	switch {
	case !c.Script && len(args) == 0:
		return c.Values, cobra.ShellCompDirectiveNoFileComp
	case !c.Script && len(args) < c.MaxArgs:
		return nil, cobra.ShellCompDirectiveDefault
	case !c.Script:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 0 && strings.HasPrefix(word, "@"):
		return libraryFiles(), cobra.ShellCompDirectiveNoFileComp
	case len(args) == 0:
		return readableEndings(), cobra.ShellCompDirectiveFilterFileExt
	}
	return completeParams(cmd, args, word)
}

// completeParams proposes the parameters of the script, the values of the one
// before, and the tool's flags.
func completeParams(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	quiet := NewSession(&bytes.Buffer{}, &bytes.Buffer{})
	src, err := quiet.open(cmd.Context(), args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	script := &starlib.Script{}
	if f := formatOf(src); f == nil || f.script {
		script, err = quiet.params(cmd.Context(), src)
	}
	if err != nil && len(script.Params) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	last, isFlag := strings.CutPrefix(args[len(args)-1], "--")
	var out []string
	for _, p := range script.Params {
		if isFlag && len(args) > 1 && p.Name == last && !strings.HasPrefix(word, "-") {
			return p.Choices, cobra.ShellCompDirectiveNoFileComp
		}
		if !p.Positional {
			out = append(out, fmt.Sprintf("--%s\t%s", p.Name, p.Help))
		}
	}
	for _, f := range flagTable() {
		if isFlag && f.Name == last && f.takesValue() && !strings.HasPrefix(word, "-") {
			return f.Values, cobra.ShellCompDirectiveNoFileComp
		}
		if cmd.Flags().Lookup(f.Name) == nil { // another command's
			continue
		}
		out = append(out, fmt.Sprintf("--%s\t%s", f.Name, f.Help))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
