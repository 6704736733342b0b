package main

import (
	"slices"
)

// shellCommandTable lists the shell's commands in the order of the help.
func shellCommandTable() []shellCommand {
	return slices.Concat(writingCommands(), lookingCommands(), judgingCommands(), steppingCommands(), lessonCommands(), otherCommands())
}

// programFlags are those of commands that compile the program.
func programFlags(more ...string) []string {
	return append([]string{"target", "slots", "slot-bytes", "min-bytes", "max-bytes", "canonical-order", "direct-as-simple", "disable"}, more...)
}

// writingCommands are about the session and what it is made of.
func writingCommands() []shellCommand {
	return []shellCommand{
		{Name: "open", Args: "PROGRAM [as NAME]", Rest: true, Alone: true, MaxArgs: -1,
			Short:    "Begin a program and keep it open: what follows is traced into it, line by line, until close",
			Long:     "The same as a line with MSCCLProgram(...):, except that what follows isn't indented, and an empty line doesn't end it.",
			Examples: []string{`open MSCCLProgram("pair", fully_connected(2), AllReduce(2, 1, True))`}, Run: shellOpen},
		{Name: "close", Alone: true, Short: "End the open program", Examples: []string{"close"}, Run: shellClose},
		{Name: "undo", Args: "[N]", MaxArgs: 1, Alone: true,
			Short:    "Take back the last statement, or the last N; a paste and a loaded file count as one",
			Examples: []string{"undo", "undo 3"}, Run: shellUndo},
		{Name: "reset", Alone: true, Short: "Begin anew, with an empty session", Examples: []string{"reset"}, Run: shellReset},
		{Name: "load", Args: "FILE [--parameter value ...]", MinArgs: 1, MaxArgs: -1, Alone: true, Files: true,
			Short: "Make a file part of the session: a script, or a program in any form that can be read",
			Long: `What a script defines can be used afterwards, and its parameters are given as on the command line.
mscclsh formats lists the other kinds of files. load("helpers.star", "hop") with names is Starlark's own load.`,
			Examples: []string{"load @algorithms/allreduce_ring.star --ranks 4", "load ring.xml"}, Run: shellLoad},
		{Name: "autoload", Args: "[FILE [--parameter value ...] | off]", MaxArgs: -1, Alone: true, Files: true,
			Short:    "Load a file, and again whenever it is saved",
			Long:     "What the session adds is put on top again. A version that fails is reported and not taken.",
			Examples: []string{"autoload ring.star --ranks 4", "autoload off"}, Run: shellAutoload},
		{Name: "save", Args: "FILE.star", MinArgs: 1, MaxArgs: 1, Alone: true, Files: true,
			Short:    "Write the session as a script that makes the same programs",
			Long:     "The script is run first to compare its programs with the session's. Lines of positions are lines of that script.",
			Examples: []string{"save ring.star"}, Run: shellSave},
		{Name: "script", Short: "Print the session as a script", Examples: []string{"script"}, Run: shellScript},
		{Name: "program", Args: "[NAME]", MaxArgs: 1, Complete: programNames,
			Short:    "List the programs; choose the one that commands are about, which is else the open one or the latest",
			Examples: []string{"program", "program pair"}, Run: shellProgramCommand},
	}
}

// lookingCommands show what the program is.
func lookingCommands() []shellCommand {
	return []shellCommand{
		{Name: "dag", Args: "[RANK] [full]", MaxArgs: 2, Complete: rankWords,
			Short:    "Draw the operations on chunks with their true and false dependencies",
			Examples: []string{"dag", "dag 0"}, Run: shellDAG},
		{Name: "instructions", Args: "[before | after | PASS | all] [RANK] [full]", MaxArgs: 3, Complete: passWords, Flags: programFlags(),
			Short:    "Draw the instructions before and after fusion; with a pass, print what it was given and what it made",
			Long:     "all prints what every pass made. mscclsh passes lists the passes.",
			Examples: []string{"instructions", "instructions after 0", "instructions fuse"},
			Run:      shellInstructions},
		{Name: "schedule", Args: "[RANK] [full]", MaxArgs: 2, Complete: rankWords, Flags: programFlags(),
			Short:    "Draw the steps of the final program on ranks and thread blocks, with waits and messages",
			Examples: []string{"schedule", "schedule 0"}, Run: shellSchedule},
		{Name: "connections", Args: "[RANK] [full]", MaxArgs: 2, Complete: rankWords, Flags: programFlags(),
			Short:    "Draw channels and connections on the links",
			Examples: []string{"connections"}, Run: shellConnections},
		{Name: "timeline", Args: "[RANK] [full] | FILE.json", MaxArgs: 2, Complete: rankWords, Files: true, Flags: programFlags("size", "dtype", "op"),
			Short:    "Run the program and draw when each step ran; with a file, write that for Perfetto",
			Examples: []string{"timeline --size 1MiB", "timeline ring.json"}, Run: shellTimeline},
		{Name: "draw", Args: "[FILE]", MaxArgs: 1, Files: true, Flags: programFlags("stage", "form", "view", "rank", "full", "width", "emit-file", "size", "dtype", "op"),
			Short:    "Write pictures as mscclsh draw does: a page to look around in, SVG, DOT or text",
			Examples: []string{"draw ring.html", "draw --stage fused fused.svg"}, Run: shellDraw},
		{Name: "buffers", Args: "[RANK]", MaxArgs: 1, Complete: rankWords, Flags: programFlags(),
			Short: "Print what every buffer holds after the operations so far, as sums of the inputs",
			Long: `0.0+1.0 is the sum of chunk 0 of the inputs of ranks 0 and 1. = marks places that hold what the collective
demands of them, . those that don't yet.`,
			Examples: []string{"buffers", "buffers 1"}, Run: shellBuffers},
	}
}

// judgingCommands do with the program what the tool's commands do.
func judgingCommands() []shellCommand {
	run := programFlags("size", "dtype", "op", "iterations", "chaos-seed", "seed", "data", "input", "output", "trace", "backend", "devices", "threads",
		"verify", "watchdog", "json", "time-passes", "check-passes", "strict")
	return []shellCommand{
		{Name: "check", Flags: programFlags("strict", "gpu", "ranks-per-gpu", "json", "time-passes", "check-passes"),
			Short:    "Compile the program and check it: every output, races, deadlock",
			Long:     "The same report as mscclsh check FILE.",
			Examples: []string{"check", "check --slots 2"}, Run: shellCheck},
		{Name: "run", Args: "[cpu | cuda] [SIZE]", MaxArgs: 2, Flags: run, Complete: func(*Shell) []string { return backends },
			Short:    "Compile, check and run the program on data",
			Long:     "The same report as mscclsh FILE.",
			Examples: []string{"run", "run cpu 1MiB --dtype bf16"}, Run: shellRun},
		{Name: "bench", Args: "[cpu | cuda]", MaxArgs: 1, Complete: func(*Shell) []string { return backends },
			Flags: programFlags("sizes", "warmup", "launches", "graph", "against", "csv", "backend", "devices", "threads", "verify", "watchdog", "iterations",
				"dtype", "op", "seed", "data", "json"),
			Short:    "Measure the program at many sizes",
			Long:     "The same table as mscclsh bench FILE.",
			Examples: []string{"bench --sizes 1KiB..64KiB"}, Run: shellBench},
		{Name: "xml", Args: "[FILE]", MaxArgs: 1, Files: true, Flags: programFlags("emit-file"),
			Short:    "Write the program as MSCCL XML, to a file if one is named",
			Examples: []string{"xml", "xml ring.xml --target rccl"}, Run: shellEmit("xml")},
		{Name: "plan", Args: "[FILE]", MaxArgs: 1, Files: true, Flags: programFlags("emit-file"),
			Short:    "Write the program as an MSCCL++ execution plan, to a file if one is named",
			Examples: []string{"plan", "plan ring.json"}, Run: shellEmit("plan")},
		{Name: "text", Args: "[FILE]", MaxArgs: 1, Files: true, Flags: programFlags("emit-file"),
			Short:    "Write the compiled program in readable form, to a file if one is named",
			Examples: []string{"text"}, Run: shellEmit("text")},
		{Name: "dot", Args: "[FILE]", MaxArgs: 1, Files: true, Flags: programFlags("emit-file"),
			Short:    "Write the compiled program for Graphviz, to a file if one is named",
			Examples: []string{"dot ring.dot"}, Run: shellEmit("dot")},
	}
}

// steppingCommands go through the final program move by move.
func steppingCommands() []shellCommand {
	flags := programFlags("size")
	return []shellCommand{
		{Name: "step", Alias: "s", Args: "[N | RANK:TB]", MaxArgs: 1, Flags: flags,
			Short:    "Make the next move of the final program, N of them, or one of a thread block",
			Long:     "A move is a step, or one message of a step that has several. It starts where the last command left off, with its flags; with others it begins anew.",
			Examples: []string{"step", "step 10", "step 2:0"}, Run: shellStep},
		{Name: "back", Args: "[N | RANK:TB:STEP | start]", MaxArgs: 1, Flags: flags, Complete: func(*Shell) []string { return []string{"start"} },
			Short:    "Take the last move back, N of them, those down to a step, or all",
			Examples: []string{"back", "back 2:0:5", "back start"}, Run: shellBack},
		{Name: "until", Alias: "continue", Args: "[RANK:TB:STEP | RANK:BUFFER[INDEX] | N | end]", MaxArgs: -1, Flags: flags,
			Complete: func(*Shell) []string { return []string{"end"} },
			Short:    "Go on to a breakpoint, or to the step, change or move that is named",
			Long: `2:0:5 is rank 2, thread block 0, step 5; * or nothing stands for all. 2:output[3] is where that place changes,
2:output[3]= where it holds what is demanded of it. end takes no notice of breakpoints.`,
			Examples: []string{"until", "until 2:0:5", "until 1:output[0]=", "until end"}, Run: shellUntil},
		{Name: "break", Alias: "breakpoint", Args: "[RANK:TB:STEP ... | clear]", MaxArgs: -1, Flags: flags,
			Complete: func(*Shell) []string { return []string{"clear"} },
			Short:    "Set breakpoints, at which until and back stop; list them, or clear them",
			Examples: []string{"break 2:0:5", "break", "break clear"}, Run: shellBreak},
		{Name: "display", Args: "[RANK] [BUFFER] | RANK:BUFFER[INDEX]", MaxArgs: 2, Flags: flags,
			Complete: func(*Shell) []string { return []string{"input", "output", "scratch"} },
			Short:    "Print what buffers hold where stepping stands, as sums of the inputs",
			Long:     "= marks what is as demanded, . what isn't yet, ! what is wrong and will stay so.",
			Examples: []string{"display", "display 0 output", "display 1:output[0]"}, Run: shellDisplay},
		{Name: "where", Args: "[RANK]", MaxArgs: 1, Flags: flags, Complete: rankWords,
			Short:    "Print where stepping stands: each thread block, its step and its line",
			Examples: []string{"where", "where 0"}, Run: machineWriter(writeWhere)},
		{Name: "slots", Flags: flags, Short: "Print the messages in flight", Examples: []string{"slots"}, Run: machineWriter(writeSlots)},
		{Name: "blocked", Flags: flags, Short: "Print who waits for what, and in a deadlock who waits for whom",
			Examples: []string{"blocked"}, Run: machineWriter(writeBlocked)},
	}
}

func otherCommands() []shellCommand {
	return []shellCommand{
		{Name: "settings", Args: "[--flag value ... | clear]", MaxArgs: 1, Flags: settingsFlags(),
			Short:    "Set flags of the tool for all commands; list them, or clear them",
			Examples: []string{"settings --target msccl --slots 4", "settings clear"}, Run: shellSettings},
		{Name: "time", Args: "STATEMENT | COMMAND", Rest: true, Alone: true, MaxArgs: -1,
			Short: "Carry out a statement or a command and say how long it took", Examples: []string{"time check"}, Run: shellTime},
		{Name: "help", Args: "[NAME]", MaxArgs: 2, Complete: helpNames,
			Short:    "Explain a command, a function of the language, or a method; NAME? and ?NAME are the same",
			Examples: []string{"help", "help(chunk)", "help copy", "chunk?"}, Run: shellHelp},
		{Name: "quit", Alias: "exit", Alone: true, Short: "End the session; Ctrl-D does too", Examples: []string{"quit"}, Run: shellQuit},
	}
}

// settingsFlags are those that can hold for all commands.
func settingsFlags() []string {
	return programFlags("runtime", "literal", "max-steps", "size", "dtype", "op", "iterations", "seed", "data", "backend", "devices", "threads", "verify",
		"watchdog", "strict", "gpu", "ranks-per-gpu", "time-passes", "check-passes", "json")
}
