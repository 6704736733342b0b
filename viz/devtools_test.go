package viz_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// browser is a headless Chromium with one tab, spoken to through two pipes: each
// message is JSON and ends with a zero byte.
type browser struct {
	t       *testing.T
	in      *os.File
	replies chan reply
	next    int
	session string
	faults  []string // errors and warnings that the page's console shows
}

type reply struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// findBrowser is the path of a Chromium. Without one the test is skipped, unless
// MSCCLSH_BROWSER=1 demands it.
func findBrowser(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if name := os.Getenv("MSCCLSH_CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("MSCCLSH_BROWSER") == "1" {
		t.Fatal("there is no chromium: scripts/browser.sh installs one")
	}
	t.Skip("there is no chromium; scripts/browser.sh installs one, and MSCCLSH_BROWSER=1 demands it")
	return ""
}

// openBrowser starts a Chromium with a window of some size.
func openBrowser(t *testing.T, width, height int) *browser {
	t.Helper()
	path := findBrowser(t)
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
		"--disable-dev-shm-usage", "--force-device-scale-factor=1", "--force-color-profile=srgb", "--remote-debugging-pipe",
		fmt.Sprintf("--window-size=%d,%d", width, height), "--user-data-dir="+t.TempDir(), "about:blank")
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{t: t, in: in, replies: make(chan reply, 1000)}
	go b.read(out)
	t.Cleanup(func() {
		in.Close() // at which Chromium ends
		done := make(chan struct{})
		go func() { cmd.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			cmd.Process.Kill()
			<-done
		}
		out.Close()
	})
	b.attach(width, height)
	return b
}

func (b *browser) read(out *os.File) {
	defer close(b.replies)
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, 64<<20)
	scan.Split(func(data []byte, _ bool) (int, []byte, error) {
		if i := slices.Index(data, 0); i >= 0 {
			return i + 1, data[:i], nil
		}
		return 0, nil, nil
	})
	for scan.Scan() {
		var r reply
		if json.Unmarshal(scan.Bytes(), &r) == nil {
			b.replies <- r
		}
	}
}

// attach makes a tab and listens to what its console shows.
func (b *browser) attach(width, height int) {
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// call sends a command and waits for its answer; events on the way are noted.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.next++
	message := map[string]any{"id": b.next, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	id := b.next
	b.wait(method, func(r reply) bool {
		if r.ID != id {
			return false
		}
		if r.Error != nil {
			b.t.Fatalf("%s: %s", method, r.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(r.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return true
	})
}

// wait takes messages until one is what is waited for.
func (b *browser) wait(what string, done func(reply) bool) {
	b.t.Helper()
	timeout := time.After(60 * time.Second)
	for {
		select {
		case r, ok := <-b.replies:
			if !ok {
				b.t.Fatalf("%s: the browser ended", what)
			}
			b.note(r)
			if done(r) {
				return
			}
		case <-timeout:
			b.t.Fatalf("%s: the browser doesn't answer", what)
		}
	}
}

// note keeps what is wrong: errors, warnings, and every wish for the network.
func (b *browser) note(r reply) {
	switch r.Method {
	case "Runtime.exceptionThrown", "Log.entryAdded":
		b.faults = append(b.faults, string(r.Params))
	case "Runtime.consoleAPICalled":
		b.faults = append(b.faults, string(r.Params))
	case "Network.requestWillBeSent":
		var p struct {
			Request struct{ URL string }
		}
		if json.Unmarshal(r.Params, &p) == nil && len(p.Request.URL) > 5 && p.Request.URL[:5] != "file:" && p.Request.URL[:5] != "data:" {
			b.faults = append(b.faults, "asks the network for "+p.Request.URL)
		}
	}
}

// open loads a file and returns how long it took until its first picture stood.
func (b *browser) open(file string) time.Duration {
	b.t.Helper()
	start := time.Now()
	b.call("Page.navigate", map[string]any{"url": "file://" + file}, nil)
	b.wait("loading", func(r reply) bool { return r.Method == "Page.loadEventFired" })
	b.frames(2)
	return time.Since(start)
}

// eval runs an expression of the page's, or awaits it.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if result != nil {
		if err := json.Unmarshal(r.Result.Value, result); err != nil {
			b.t.Fatalf("%s: %v: %s", expression, err, r.Result.Value)
		}
	}
}

// frames waits until the page was drawn so often.
func (b *browser) frames(n int) {
	b.t.Helper()
	b.eval(fmt.Sprintf(`(async () => { for (let i = 0; i < %d; i++) await new Promise(requestAnimationFrame); return 0; })()`, n), nil)
}

// text is what an element says.
func (b *browser) text(id string) string {
	b.t.Helper()
	var s string
	b.eval(fmt.Sprintf(`document.getElementById(%q).innerText`, id), &s)
	return s
}

// mouse moves the pointer, or presses its button.
func (b *browser) mouse(kind string, x, y float64) {
	b.t.Helper()
	p := map[string]any{"type": kind, "x": x, "y": y, "button": "none"}
	if kind != "mouseMoved" {
		p["button"], p["clickCount"] = "left", 1
	}
	b.call("Input.dispatchMouseEvent", p, nil)
}

func (b *browser) click(x, y float64) {
	b.t.Helper()
	b.mouse("mouseMoved", x, y)
	b.mouse("mousePressed", x, y)
	b.mouse("mouseReleased", x, y)
	b.frames(2)
}

// press clicks an element.
func (b *browser) press(selector string) {
	b.t.Helper()
	var at [2]float64
	b.eval(fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()`, selector), &at)
	b.click(at[0], at[1])
}

// shot is a picture of the window, PNG.
func (b *browser) shot() []byte {
	b.t.Helper()
	var r struct{ Data []byte }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &r)
	return r.Data
}
