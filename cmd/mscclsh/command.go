package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// command is one row of the table that the command line, its help, completion
// and docs/cli.md are made from.
type command struct {
	Name     string
	Args     string     // as shown after the name
	Short    string     // one line
	Long     string     // paragraphs; "" if Short says it all
	Examples []string   // whole command lines
	Flags    []string   // names of the tool's flags it takes
	Own      []toolFlag // flags that it alone has, and no script
	MaxArgs  int        // -1 is any number
	MinArgs  int
	Ignored  []string // flags that are taken and mean nothing
	Values   []string // the only arguments, if they can be listed
	Script   bool     // the first argument is a script, the rest is the script's
	Run      func(ctx context.Context, s *Session, args []string) error
}

// Usage is the command line's shape.
func (c *command) Usage() string {
	parts := []string{"mscclsh"}
	for _, p := range []string{c.Name, c.Args} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if c.Name == "" {
		parts = slices.Insert(parts, 1, "[flags]")
	}
	return strings.Join(parts, " ")
}

// newRoot makes the cobra commands for a session from the table.
func newRoot(s *Session) *cobra.Command {
	table := commandTable()
	root := table[0].cobra(s)
	root.CompletionOptions.DisableDefaultCmd = true
	root.Version = version
	root.SetVersionTemplate(versionText() + "\n")
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	for i := range table[1:] {
		root.AddCommand(table[1+i].cobra(s))
	}
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	return root
}

func (c *command) cobra(s *Session) *cobra.Command {
	use := c.Name
	if use == "" {
		use = "mscclsh"
	}
	cc := &cobra.Command{
		Use:               use,
		Short:             c.Short,
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              c.checkArgs,
		ValidArgsFunction: c.complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.Run(cmd.Context(), s, args)
		},
	}
	cc.Flags().SortFlags = false
	cc.Flags().SetInterspersed(!c.Script)
	cc.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.TrimPrefix(name, "tool.")) // as after the script
	})
	flags := c.allFlags()
	for i := range flags {
		bindFlag(cc, &flags[i], s.Set)
	}
	for _, name := range c.Ignored {
		cc.Flags().Bool(name, false, "")
	}
	cc.SetHelpFunc(func(*cobra.Command, []string) { writeHelp(s.Out, c) })
	cc.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return c.flagError(err) })
	return cc
}

// allFlags are the flags that the command takes, its own first.
func (c *command) allFlags() []toolFlag {
	list, tool := slices.Clone(c.Own), flagTable()
	for _, name := range c.Flags {
		list = append(list, *findFlag(tool, name))
	}
	return list
}

// flagNames are their names.
func (c *command) flagNames() []string {
	var names []string
	for _, f := range c.allFlags() {
		names = append(names, f.Name)
	}
	return names
}

func (c *command) checkArgs(cmd *cobra.Command, args []string) error {
	explain := cmd.Flags().Lookup("explain")
	switch {
	case len(args) < c.MinArgs && explain != nil && explain.Changed: // about no program
	case len(args) < c.MinArgs:
		return badCallHint("missing-argument", "usage: "+c.Usage(), "%s: an argument is missing", c.label())
	case c.MaxArgs >= 0 && len(args) > c.MaxArgs:
		return badCallHint("unexpected-argument", "usage: "+c.Usage(), "%s: unexpected argument %q", c.label(), args[c.MaxArgs])
	case len(args) > 0 && c.Values != nil && !slices.Contains(c.Values, args[0]):
		return badCallHint("bad-argument", didYouMean(args[0], c.Values, ""), "%s: got %q, want %s", c.label(), args[0], orList(c.Values))
	}
	return nil
}

func (c *command) label() string {
	if c.Name == "" {
		return "mscclsh"
	}
	return c.Name
}

// flagError turns pflag's errors into ours.
func (c *command) flagError(err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		dashes := "--"
		if len(name) == 1 || unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		hint := ""
		if dashes == "--" {
			hint = didYouMean(name, c.flagNames(), "--")
		}
		if slices.Contains(onlyOfCheck[:], name) {
			hint = "it is a flag of mscclsh check"
		}
		if hint == "" {
			hint = "mscclsh " + strings.TrimSpace(c.Name+" --help") + " lists the flags"
			if c.Script {
				hint += "; parameters of a script stand after it"
			}
		}
		return badCallHint("unknown-flag", hint, "unknown flag %s%s", dashes, name)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		name := invalid.GetFlag().Name
		return badCall("flag-value", "--%s: %s", name, strings.TrimPrefix(invalid.Unwrap().Error(), name+": "))
	}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		f := findFlag(c.allFlags(), missing.GetFlag().Name)
		return badCall("flag-value", "--%s needs a value: --%s %s", f.Name, f.Name, f.Arg)
	}
	return badCall("bad-flag", "%s", err.Error())
}

// flagValue makes a toolFlag a pflag.Value.
type flagValue struct {
	flag *toolFlag
	set  *Settings
}

func (v *flagValue) String() string         { return "" }
func (v *flagValue) Set(value string) error { return v.flag.set(v.set, value) }
func (v *flagValue) Type() string           { return v.flag.Arg }

func bindFlag(cc *cobra.Command, f *toolFlag, set *Settings) {
	p := cc.Flags().VarPF(&flagValue{f, set}, f.Name, f.Short, f.Help)
	if !f.takesValue() {
		p.NoOptDefVal = "true"
	}
	complete := cobra.FixedCompletions(f.Values, cobra.ShellCompDirectiveNoFileComp)
	switch f.Arg {
	case "FILE", "PATTERN":
		complete = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
	// The flag was made two lines up, so it can't be unknown or taken.
	_ = cc.RegisterFlagCompletionFunc(f.Name, complete)
}
