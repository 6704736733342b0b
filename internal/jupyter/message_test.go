package jupyter

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// The signatures were computed with Python's hmac and by jupyter_client's own
// session, which agree.
const (
	goldenKey     = "a0436f6c-1916-498b-8eb9-e81ab9368e84"
	requestHeader = `{"msg_id":"m1","session":"s","username":"u","date":"2026-01-02T03:04:05.000006Z","msg_type":"execute_request","version":"5.3"}`
	requestBody   = `{"code":"print(\"ä\")","silent":false}`
	requestSign   = "a5347fdad03f8f43868ae2b33f053ec45fff8c3218ef762220fe3820f285d267"
	statusHeader  = `{"msg_id":"k_1","session":"k","username":"kernel","date":"2026-01-02T03:04:05.000000Z","msg_type":"status","version":"5.3"}`
	statusSign    = "c00c038ef4c74d25d23a1aca27ee97bf6a9d357d89ff9245958e86ce6f47d9c9"
)

func split(text string) [][]byte {
	var frames [][]byte
	for _, f := range strings.Split(text, "\n") {
		frames = append(frames, []byte(f))
	}
	return frames
}

func TestDecode(t *testing.T) {
	good := "client\n<IDS|MSG>\n" + requestSign + "\n" + requestHeader + "\n{}\n{}\n" + requestBody
	for _, c := range []struct{ name, frames, key, want string }{
		{"signed", good, goldenKey, ""},
		{"with buffers", good + "\nraw bytes", goldenKey, ""},
		{"without a route", strings.TrimPrefix(good, "client\n"), goldenKey, ""},
		{"capital digits", strings.Replace(good, requestSign, strings.ToUpper(requestSign), 1), goldenKey, ""},
		{"no key", strings.Replace(good, requestSign, "", 1), "", ""},
		{"other key", good, "b" + goldenKey[1:], "signature is wrong"},
		{"changed content", strings.Replace(good, "ä", "a", 1), goldenKey, "signature is wrong"},
		{"changed metadata", strings.Replace(good, "\n{}\n{}\n", "\n{}\n{ }\n", 1), goldenKey, "signature is wrong"},
		{"no signature", strings.Replace(good, requestSign, "", 1), goldenKey, "signature is wrong"},
		{"cut signature", strings.Replace(good, requestSign, requestSign[:63], 1), goldenKey, "signature is wrong"},
		{"too few frames", good[:strings.LastIndexByte(good, '\n')], goldenKey, "of 6 frames"},
		{"no delimiter", strings.Replace(good, "<IDS|MSG>", "<IDS>", 1), goldenKey, "want <IDS|MSG>"},
		{"no frames", "", goldenKey, "of 1 frames"},
		{"no JSON", "<IDS|MSG>\n\nheader\n{}\n{}\n{}", "", "reading the header"},
		{"no object", "<IDS|MSG>\n\n" + requestHeader + "\n{}\n{}\n[1]", "", "reading the content"},
		{"no type", "<IDS|MSG>\n\n{}\n{}\n{}\n{}", "", "without a type"},
		{"type of another type", "<IDS|MSG>\n\n{\"msg_type\":3}\n{}\n{}\n{}", "", "reading the header"},
	} {
		m, err := Codec{[]byte(c.key)}.Decode(split(c.frames))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if m.Header.ID != "m1" || m.Header.Type != "execute_request" || string(m.Content) != requestBody {
			t.Errorf("%s: got %+v", c.name, m.Header)
		}
		if c.name == "with buffers" && (len(m.Buffers) != 1 || string(m.Buffers[0]) != "raw bytes") {
			t.Errorf("%s: got %q", c.name, m.Buffers)
		}
	}
}

func TestEncode(t *testing.T) {
	m := &Message{Route: [][]byte{[]byte("topic")}, Parent: []byte(requestHeader), Content: []byte(`{"execution_state":"busy"}`),
		Header: Header{ID: "k_1", Session: "k", Username: "kernel", Date: "2026-01-02T03:04:05.000000Z", Type: "status", Version: "5.3"}}
	want := "topic\n<IDS|MSG>\n" + statusSign + "\n" + statusHeader + "\n" + requestHeader + "\n{}\n" + `{"execution_state":"busy"}`
	frames, err := Codec{[]byte(goldenKey)}.Encode(m)
	if got := string(bytes.Join(frames, []byte("\n"))); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
}

func TestParseConnection(t *testing.T) {
	const file = `{"shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4,"hb_port":5,"ip":"127.0.0.1","key":"k","transport":"tcp","signature_scheme":"hmac-sha256","kernel_name":"x"}`
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"127.0.0.1", "::1", ""},
		{`"tcp"`, `"ipc"`, ""},
		{`"tcp"`, `"udp"`, `transport: got "udp"`},
		{"sha256", "md5", `signature_scheme: got "hmac-md5"`},
		{`"hb_port":5`, `"hb_port":0`, "hb_port: got 0"},
		{`"hb_port":5,`, "", "hb_port: got 0"},
		{`"stdin_port":3`, `"stdin_port":65536`, "stdin_port: got 65536"},
		{"127.0.0.1", "", "no ip"},
		{"{", "", "no connection file"},
	} {
		conn, err := ParseConnection([]byte(strings.Replace(file, c.old, c.new, 1)))
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s -> %s: got %v, want an error with %q", c.old, c.new, err, c.want)
			}
		case err != nil:
			t.Errorf("%s -> %s: %v", c.old, c.new, err)
		default:
			want := map[string]string{"": "tcp://127.0.0.1:4", "127.0.0.1": "tcp://[::1]:4", `"tcp"`: "ipc://127.0.0.1-4"}[c.old]
			if got := conn.Endpoint(conn.Control); got != want {
				t.Errorf("%s: got %s, want %s", c.new, got, want)
			}
		}
	}
}

// Cursors count characters.
func TestCursor(t *testing.T) {
	for _, c := range []struct {
		code      string
		pos, want int
	}{
		{"abc", 0, 0}, {"abc", 2, 2}, {"abc", 3, 3}, {"abc", 9, 3}, {"abc", -1, 0},
		{"é=1", 1, 2}, {"é=1", 2, 3}, {"😀x", 1, 4}, {"😀x", 2, 5}, {"", 0, 0},
	} {
		r := cursorRequest{c.code, &c.pos}
		if got := r.at(); got != c.want {
			t.Errorf("%q, %d: got %d, want %d", c.code, c.pos, got, c.want)
		}
	}
	if got := (&cursorRequest{Code: "é="}).at(); got != 3 {
		t.Errorf("without a cursor: got %d, want 3", got)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b\nc", true}, {"a*", "abc", true}, {"a*", "ba", false},
		{"*c", "abcc", true}, {"*b", "abcc", false}, {"a?c", "abc", true}, {"a?c", "ac", false}, {"*b*d", "abcbd", true},
		{"*b*d", "abcb", false}, {"[a]", "[a]", true}, {"a**", "a", true},
	} {
		if got := glob(c.pattern, c.text); got != c.want {
			t.Errorf("%q, %q: got %v", c.pattern, c.text, got)
		}
	}
}

func TestHistory(t *testing.T) {
	h := history{[]pastCell{{1, "a"}, {2, "b"}, {3, "a"}, {4, "c"}}}
	for _, c := range []struct {
		name string
		r    historyRequest
		want string
	}{
		{"tail", historyRequest{Access: "tail", N: 2}, "3a 4c"},
		{"tail of all", historyRequest{Access: "tail", N: 9}, "1a 2b 3a 4c"},
		{"range", historyRequest{Access: "range", Start: 2, Stop: 4}, "2b 3a"},
		{"open range", historyRequest{Access: "range", Start: 3}, "3a 4c"},
		{"range of an earlier session", historyRequest{Access: "range", Session: -1}, ""},
		{"search", historyRequest{Access: "search", Pattern: "a*"}, "1a 3a"},
		{"search for the last", historyRequest{Access: "search", Pattern: "*", N: 1}, "4c"},
		{"unique", historyRequest{Access: "search", Pattern: "*", Unique: true}, "2b 3a 4c"},
	} {
		var got []string
		for _, e := range h.find(&c.r) {
			got = append(got, string(rune('0'+e[1].(int)))+e[2].(string))
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
	if e := h.find(&historyRequest{Access: "tail", N: 1, Output: true}); e[0][2] != [2]any{"c", nil} {
		t.Errorf("with output: got %v", e[0])
	}
}

// Text goes out in order, a stream at a time, never within a character.
func TestStreams(t *testing.T) {
	var got []string
	o := &output{send: func(kind string, content any) {
		switch c := content.(type) {
		case streamContent:
			if !utf8.ValidString(c.Text) {
				t.Errorf("got %q, which is cut within a character", c.Text)
			}
			if len(c.Text) < 100 {
				got = append(got, c.Name+":"+c.Text)
			} else {
				got = append(got, c.Name+":long")
			}
		case displayContent:
			got = append(got, kind+":"+c.Data["text/plain"])
		}
	}}
	write := func(name, text string) {
		w := o.Stdout()
		if name == "stderr" {
			w = o.Stderr()
		}
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("writing: got %d, %v", n, err)
		}
	}
	write("stdout", "a")
	write("stdout", "b\n")
	write("stderr", "c")
	write("stdout", "d")
	o.Display(map[string]string{"text/plain": "picture"})
	write("stdout", strings.Repeat("x", streamMost-1)+"é"[:1])
	write("stdout", "é"[1:])
	o.end()
	write("stdout", "too late")
	o.end()
	want := "stdout:ab\n,stderr:c,stdout:d,display_data:picture,stdout:long,stdout:é"
	if text := strings.Join(got, ","); text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}
