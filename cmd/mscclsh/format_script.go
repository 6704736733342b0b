package main

// starFormat is a script of this project's language.
func starFormat() format {
	return format{Name: "star", Title: "a script", Exts: []string{".star"}, script: true,
		Help: "script in Starlark: mscclsh doc language"}
}

// pythonFormat is a script for msccl-tools.
func pythonFormat() format {
	return format{Name: "python", Title: "a script", Exts: []string{".py"}, script: true,
		Help: "script for msccl-tools in Python, with its own arguments"}
}
