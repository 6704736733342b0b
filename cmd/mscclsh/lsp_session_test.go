package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestEditorSessions runs the sessions in testdata/lsp: each archive has a session (a
// command a line), the files that it opens, and what the server says (want), which
// -update rewrites.
func TestEditorSessions(t *testing.T) {
	files, err := filepath.Glob("testdata/lsp/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d sessions, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			e := startEditor(t, nil)
			session, want := "", (*txtar.File)(nil)
			for i := range a.Files {
				switch f := &a.Files[i]; f.Name {
				case "session":
					session = string(f.Data)
				case "want":
					want = f
				default:
					e.text[f.Name] = string(f.Data)
					if err := os.WriteFile(filepath.Join(e.folder, f.Name), f.Data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := e.play(session)
			if *update {
				if want == nil {
					a.Files = append(a.Files, txtar.File{Name: "want"})
					want = &a.Files[len(a.Files)-1]
				}
				want.Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want == nil || string(want.Data) != got {
				t.Errorf("got\n%s\nrun go test ./cmd/mscclsh -run TestEditorSessions -update and read the difference", got)
			}
		})
	}
}

// libraryHash is in the name of the folder of the library's scripts.
var libraryHash = regexp.MustCompile(`file://[^"]*/mscclsh/algorithms/[0-9a-f]{12}`)

// play carries out a session and tells what came of each line.
func (e *editor) play(session string) string {
	e.t.Helper()
	var b strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(session), "\n") {
		fmt.Fprintf(&b, "> %s\n", line)
		if result := e.command(line); result != nil {
			var raw bytes.Buffer
			enc := json.NewEncoder(&raw)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", " ")
			if err := enc.Encode(result); err != nil {
				e.t.Fatal(err)
			}
			text := bytes.TrimSpace(raw.Bytes())
			text = libraryHash.ReplaceAllLiteral(bytes.ReplaceAll(text, []byte(e.folder), []byte("$FOLDER")), []byte("file://$LIBRARY"))
			for _, l := range strings.Split(string(text), "\n") {
				b.WriteString("  " + l + "\n")
			}
		}
	}
	return b.String()
}

// publishedAbout is what is published about n documents, in the order of their names.
func (e *editor) publishedAbout(n int) any {
	e.t.Helper()
	var all []any
	for range n {
		all = append(all, e.receive()["params"])
	}
	slices.SortFunc(all, func(a, b any) int {
		return strings.Compare(a.(map[string]any)["uri"].(string), b.(map[string]any)["uri"].(string))
	})
	if n == 1 {
		return all[0]
	}
	return all
}

// command is one line of a session: start (initialize, without a word), open FILE, edit FILE LINE:COLUMN LINE:COLUMN "TEXT",
// close FILE, complete FILE LINE:COLUMN, resolve FILE LINE:COLUMN LABEL, METHOD FILE
// LINE:COLUMN for textDocument/METHOD, shutdown, exit. Lines and columns count from 1.
// Behind "also" stand further documents that are judged again for it.
func (e *editor) command(line string) any {
	e.t.Helper()
	line, others, _ := strings.Cut(line, " also ")
	documents := 1 + len(strings.Fields(others))
	words := strings.SplitN(line, " ", 5)
	params := map[string]any{}
	if len(words) > 1 {
		params["textDocument"] = map[string]any{"uri": e.uri(words[1])}
	}
	if len(words) > 2 {
		params["position"] = e.position(words[2])
	}
	switch words[0] {
	case "start":
		e.initialize()
		return nil
	case "initialize":
		return e.initialize()["result"]
	case "shutdown":
		return e.request("shutdown", nil)
	case "exit":
		e.notify("exit", nil)
		if err := <-e.end; err != nil {
			return err.Error()
		}
		return "ended"
	case "open":
		e.notify("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": e.uri(words[1]), "languageId": "starlark",
			"version": 1, "text": e.text[words[1]]}})
		return e.publishedAbout(documents)
	case "edit":
		text, err := strconv.Unquote(words[4])
		if err != nil {
			e.t.Fatalf("%s: %v", line, err)
		}
		e.next++
		e.notify("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": e.uri(words[1]), "version": e.next},
			"contentChanges": []any{map[string]any{"range": map[string]any{"start": e.position(words[2]), "end": e.position(words[3])}, "text": text}}})
		return e.publishedAbout(documents)
	case "close":
		e.notify("textDocument/didClose", params)
		return e.publishedAbout(documents)
	case "complete", "resolve":
		var labels []string
		for _, i := range e.request("textDocument/completion", params)["result"].(map[string]any)["items"].([]any) {
			item := i.(map[string]any)
			labels = append(labels, item["label"].(string))
			if words[0] == "resolve" && item["label"] == words[3] {
				return e.request("completionItem/resolve", item)["result"]
			}
		}
		return strings.Join(labels, " ")
	}
	return e.request("textDocument/"+words[0], params)
}

func (e *editor) position(s string) map[string]any {
	e.t.Helper()
	var line, column int
	if _, err := fmt.Sscanf(s, "%d:%d", &line, &column); err != nil {
		e.t.Fatalf("%s: %v", s, err)
	}
	return map[string]any{"line": line - 1, "character": column - 1}
}
