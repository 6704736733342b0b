package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// neovimSession is what a person does, in Lua: it opens a script, asks, mends it, and
// writes down what came of it.
const neovimSession = `
local out = {}
local function wait(what, done)
  if not vim.wait(20000, done, 20) then error("waited in vain for " .. what) end
end
local function ask(method, line, column)
  local params = vim.lsp.util.make_position_params(0, "utf-16")
  params.position = { line = line, character = column }
  local got = vim.lsp.buf_request_sync(0, method, params, 20000)
  for _, answer in pairs(got or {}) do return answer.result end
end
local ok, err = pcall(function()
  vim.cmd("edit wrong.star")
  out.filetype = vim.bo.filetype
  wait("diagnostics", function() return #vim.diagnostic.get(0) > 0 end)
  local d = vim.diagnostic.get(0)[1]
  out.diagnostic = { line = d.lnum, column = d.col, last = d.end_col, message = d.message, code = d.code, source = d.source }
  out.hover = ask("textDocument/hover", 4, 31).contents.value
  local items = ask("textDocument/completion", 4, 52).items
  out.completion = vim.tbl_map(function(i) return i.label end, items)
  out.definition = ask("textDocument/definition", 2, 20).range
  -- A change behind an emoji, as the editor sends it.
  vim.api.nvim_buf_set_text(0, 3, 26, 3, 29, { "fox" })
  vim.api.nvim_buf_set_text(0, 4, 26, 4, 27, { "ks" })
  wait("a clean script", function() return #vim.diagnostic.get(0) == 0 end)
  vim.api.nvim_buf_set_lines(0, -1, -1, false, { "x = 'fine'", "y = x + nope" })
  wait("the next mistake", function() return #vim.diagnostic.get(0) == 1 end)
  out.second = vim.diagnostic.get(0)[1].message
end)
out.error = not ok and tostring(err) or nil
local f = io.open("out.json", "w")
f:write(vim.json.encode(out))
f:close()
vim.cmd("qall!")
`

// TestNeovim runs the configuration that docs/editors.md has for Neovim in a Neovim.
func TestNeovim(t *testing.T) {
	nvim := installed(t, "MSCCLSH_EDITOR", "editor", "runs a Neovim, which may have to be installed")
	page, err := os.ReadFile("../../docs/editors.md")
	if err != nil {
		t.Fatal(err)
	}
	config := regexp.MustCompile("(?ms)^```lua\n(.*?)^```$").FindSubmatch(page)
	if config == nil {
		t.Fatal("docs/editors.md has no configuration in Lua")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if said, err := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(bin, "mscclsh"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	script := strings.Join([]string{
		`with MSCCLProgram("p", fully_connected(2), AllGather(2, 1, False)):`,
		`    ranks = 2`,
		`    for r in range(ranks):`,
		`        smile = "😀" + "cat"`,
		`        for d in range(ranx): chunk(r, "input", 0).copy(d, "output", r)`,
	}, "\n") + "\n"
	for name, text := range map[string]string{"init.lua": string(config[1]), "session.lua": neovimSession, "wrong.star": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, nvim, "--headless", "-n", "-i", "NONE", "-u", "init.lua", "-S", "session.lua")
	cmd.Dir = dir
	for _, name := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
		cmd.Env = append(cmd.Env, "XDG_"+name+"_HOME="+filepath.Join(dir, "xdg"))
	}
	cmd.Env = append(cmd.Environ(), append(cmd.Env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "out.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Error, Filetype, Hover, Second string
		Diagnostic                     struct {
			Line, Column, Last    int
			Message, Code, Source string
		}
		Completion []string
		Definition struct{ Start struct{ Line, Character int } }
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if got.Error != "" {
		t.Fatalf("Neovim says %s", got.Error)
	}
	d := got.Diagnostic
	if d.Line != 4 || d.Column != 23 || d.Last != 27 || d.Code != "undefined-name" || d.Source != "mscclsh" || !strings.HasPrefix(d.Message, "undefined: ranx") {
		t.Errorf("the mistake: got %+v", d)
	}
	if got.Filetype != "starlark" || !strings.Contains(got.Second, "undefined: nope") {
		t.Errorf("got file type %q, second mistake %q", got.Filetype, got.Second)
	}
	if !strings.Contains(got.Hover, "chunk(rank, buffer, index, size=1) -> ref") || !strings.Contains(strings.Join(got.Completion, " "), "copy get_dst_index") {
		t.Errorf("got help %q, completion %q", got.Hover, got.Completion)
	}
	if at := got.Definition.Start; at.Line != 1 || at.Character != 4 {
		t.Errorf("ranks is defined at %+v, want line 1, column 4", at)
	}
}
