package jupyter

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/go-zeromq/zmq4"
)

// request is one that is being answered.
type request struct {
	*Message
	s       *Server
	socket  zmq4.Socket
	aborted bool
}

func (r *request) reply(kind string, content any)     { r.s.reply(r.socket, r.Message, kind, content) }
func (r *request) broadcast(kind string, content any) { r.s.broadcast(r.Message, kind, content) }

// read takes the content apart.
func (r *request) read(into any) error {
	if err := json.Unmarshal(r.Content, into); err != nil {
		return fmt.Errorf("reading the content of the %s: %w", r.Header.Type, err)
	}
	return nil
}

// okContent is the content of answers that say nothing else.
type okContent struct {
	Status string `json:"status"`
}

var ok = okContent{"ok"}

// handlers answer the types of requests.
func handlers() map[string]func(context.Context, *request) error {
	return map[string]func(context.Context, *request) error{
		"kernel_info_request": kernelInfo,
		"execute_request":     execute,
		"complete_request":    complete,
		"inspect_request":     inspect,
		"is_complete_request": isComplete,
		"history_request":     pastCells,
		"comm_info_request":   commInfo,
		"comm_open":           commOpen,
		"comm_msg":            nothing,
		"comm_close":          nothing,
		"interrupt_request":   interrupt,
		"shutdown_request":    shutdown,
	}
}

// handle answers a request, between the states busy and idle.
func (s *Server) handle(ctx context.Context, from zmq4.Socket, m *Message, aborted bool) {
	do := handlers()[m.Header.Type]
	if do == nil {
		s.log.Printf("got %s, which this kernel doesn't know", m.Header.Type)
		return
	}
	r := &request{m, s, from, aborted}
	r.broadcast("status", statusContent{"busy"})
	defer r.broadcast("status", statusContent{"idle"})
	if err := s.guard(func() error { return do(ctx, r) }); err != nil {
		s.log.Print(err)
		if kind, is := strings.CutSuffix(m.Header.Type, "_request"); is {
			r.reply(kind+"_reply", failedContent{Status: "error", errorContent: errorContent{"KernelError", err.Error(), []string{err.Error()}}})
		}
	}
}

// guard makes an error of a panic: a defect here, never the client's fault. Where it
// was is for the log.
func (s *Server) guard(do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("internal error: %v: please report it, with what the kernel has logged", v)
			s.log.Printf("%v\n%s", err, debug.Stack())
		}
	}()
	return do()
}

func nothing(context.Context, *request) error { return nil }

type infoContent struct {
	Status         string   `json:"status"`
	Protocol       string   `json:"protocol_version"`
	Implementation string   `json:"implementation"`
	Version        string   `json:"implementation_version"`
	Language       Language `json:"language_info"`
	Banner         string   `json:"banner"`
	Debugger       bool     `json:"debugger"`
	Links          []Link   `json:"help_links"`
}

func kernelInfo(_ context.Context, r *request) error {
	i := &r.s.o.Info
	r.reply("kernel_info_reply", infoContent{Status: "ok", Protocol: ProtocolVersion, Implementation: i.Implementation, Version: i.Version,
		Language: i.Language, Banner: i.Banner, Links: append([]Link{}, i.Links...)})
	return nil
}

// cursorRequest is what completion and inspection have in common. Cursors count
// characters, here bytes.
type cursorRequest struct {
	Code   string `json:"code"`
	Cursor *int   `json:"cursor_pos"`
}

// at is the byte of the cursor, at the end if there is none.
func (c *cursorRequest) at() int {
	if c.Cursor == nil {
		return len(c.Code)
	}
	left := *c.Cursor
	for i := range c.Code {
		if left <= 0 {
			return i
		}
		left--
	}
	return len(c.Code)
}

type completeContent struct {
	Status   string   `json:"status"`
	Matches  []string `json:"matches"`
	Start    int      `json:"cursor_start"`
	End      int      `json:"cursor_end"`
	Metadata struct{} `json:"metadata"`
}

func complete(_ context.Context, r *request) error {
	var c cursorRequest
	if err := r.read(&c); err != nil {
		return err
	}
	at := c.at()
	list, start := r.s.o.Engine.Complete(c.Code, at)
	r.reply("complete_reply", completeContent{Status: "ok", Matches: append([]string{}, list...),
		Start: utf8.RuneCountInString(c.Code[:start]), End: utf8.RuneCountInString(c.Code[:at])})
	return nil
}

type inspectContent struct {
	Status   string            `json:"status"`
	Found    bool              `json:"found"`
	Data     map[string]string `json:"data"`
	Metadata struct{}          `json:"metadata"`
}

func inspect(_ context.Context, r *request) error {
	var c cursorRequest
	if err := r.read(&c); err != nil {
		return err
	}
	answer := inspectContent{Status: "ok", Data: map[string]string{}}
	if text := r.s.o.Engine.Inspect(c.Code, c.at()); text != "" {
		answer.Found, answer.Data["text/plain"] = true, text
	}
	r.reply("inspect_reply", answer)
	return nil
}

type isCompleteContent struct {
	Status string `json:"status"`
	Indent string `json:"indent"`
}

func isComplete(_ context.Context, r *request) error {
	var c cursorRequest
	if err := r.read(&c); err != nil {
		return err
	}
	answer := isCompleteContent{Status: "complete"}
	if whole, indent := r.s.o.Engine.IsComplete(c.Code); !whole {
		answer = isCompleteContent{"incomplete", indent}
	}
	r.reply("is_complete_reply", answer)
	return nil
}

type historyContent struct {
	Status  string   `json:"status"`
	History [][3]any `json:"history"`
}

func pastCells(_ context.Context, r *request) error {
	var h historyRequest
	if err := r.read(&h); err != nil {
		return err
	}
	r.reply("history_reply", historyContent{"ok", r.s.past.find(&h)})
	return nil
}

type commsContent struct {
	Status string              `json:"status"`
	Comms  map[string]struct{} `json:"comms"`
}

func commInfo(_ context.Context, r *request) error {
	r.reply("comm_info_reply", commsContent{"ok", map[string]struct{}{}})
	return nil
}

type commContent struct {
	ID   string   `json:"comm_id"`
	Data struct{} `json:"data"`
}

// commOpen closes what a client opens: there is nothing here to talk to.
func commOpen(_ context.Context, r *request) error {
	var c struct {
		ID string `json:"comm_id"`
	}
	if err := r.read(&c); err != nil {
		return err
	}
	r.broadcast("comm_close", commContent{ID: c.ID})
	return nil
}

// interrupt ends the cell that runs. It comes over the control socket, beside it.
func interrupt(_ context.Context, r *request) error {
	r.s.interrupt()
	r.reply("interrupt_reply", ok)
	return nil
}

type shutdownContent struct {
	Status  string `json:"status"`
	Restart bool   `json:"restart"`
}

// shutdown ends the kernel. To restart it is the client's business.
func shutdown(_ context.Context, r *request) error {
	var c shutdownContent
	if err := r.read(&c); err != nil {
		return err
	}
	c.Status = "ok"
	r.s.interrupt()
	r.reply("shutdown_reply", c)
	r.broadcast("shutdown_reply", c)
	r.s.finish()
	return nil
}
