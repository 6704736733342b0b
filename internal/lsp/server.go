package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"runtime/debug"
	"sync"
	"time"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// Options are what a server works with.
type Options struct {
	In      io.Reader
	Out     io.Writer
	Log     io.Writer // what goes wrong inside, for whoever looks for it; nil discards it
	Version string

	// Judge runs a script, or reads a program in its text form, and says what is wrong
	// with it. It reads further files through read only.
	Judge func(ctx context.Context, file string, text []byte, read func(string) ([]byte, error)) diag.List
	// Explain is what a finding's code means, in Markdown; "" for codes that it doesn't know.
	Explain func(code string) string
	// Link is the page on a finding's code; "" for none.
	Link func(code string) string
	// Values are what a parameter that is a string can be, by "function.parameter".
	Values map[string][]string
	// Library is what "@algorithms/NAME.star" is read from. Its scripts are written into
	// the folder LibraryDir when an editor has to open one.
	Library    fs.FS
	LibraryDir string
	// ReadFile reads scripts that no editor has open; nil reads files.
	ReadFile func(name string) ([]byte, error)

	Debounce  time.Duration // how long a document must rest before it is judged
	TimeLimit time.Duration // of a judgment; 0 is DefaultTimeLimit
}

// DefaultTimeLimit is how long a document may take to be judged.
const DefaultTimeLimit = 10 * time.Second

// maxRequests is how many requests are answered at a time.
const maxRequests = 32

// ErrNoShutdown is what Run returns when the client went away without a word.
var ErrNoShutdown = errors.New("the client ended the session without a shutdown request")

// handler answers a request. It is made when the request is read, so that it sees
// the documents as they are then, and runs beside others.
type handler func(ctx context.Context) (any, error)

// server is one session.
type server struct {
	o     Options
	lang  *language
	conn  *conn
	log   *log.Logger
	enc   encoding
	caps  initializeParams
	state state
	make  map[string]func(params json.RawMessage) (handler, error)

	mu      sync.Mutex // of what follows
	docs    map[string]*document
	pending map[string]context.CancelFunc // of requests, by id

	publishing sync.Mutex    // held while diagnostics are sent
	judging    chan struct{} // held by the one judgment that is waited for
	alive      chan struct{} // held by it and by those that didn't end when they were told to
	slots      chan struct{}
	shipped    sync.Once
	shippedErr error
	wg         sync.WaitGroup
	stop       context.CancelCauseFunc
}

// state is where in its life a session is.
type state uint8

const (
	fresh state = iota
	running
	shutDown
)

func newServer(o Options) *server {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.TimeLimit == 0 {
		o.TimeLimit = DefaultTimeLimit
	}
	s := &server{o: o, lang: newLanguage(), conn: &conn{w: o.Out}, log: log.New(o.Log, "mscclsh lsp: ", 0),
		docs: map[string]*document{}, pending: map[string]context.CancelFunc{},
		judging: make(chan struct{}, 1), alive: make(chan struct{}, maxStuck), slots: make(chan struct{}, maxRequests)}
	s.make = map[string]func(json.RawMessage) (handler, error){
		"textDocument/hover":          s.onPosition(s.hover),
		"textDocument/completion":     s.onPosition(s.complete),
		"textDocument/signatureHelp":  s.onPosition(s.signatureHelp),
		"textDocument/definition":     s.onPosition(s.definition),
		"textDocument/documentSymbol": s.onPosition(s.symbols),
		"textDocument/foldingRange":   s.onPosition(s.folding),
		"completionItem/resolve":      s.resolveItem,
	}
	return s
}

// Run serves one client until it says exit (nil), goes away, or sends what is no
// message (a *FramingError).
func Run(ctx context.Context, o Options) error { return newServer(o).run(ctx) }

type frame struct {
	body []byte
	err  error
}

func (s *server) run(ctx context.Context) error {
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.wg.Wait()
	defer s.closeAll()
	defer s.stop(nil)
	frames := make(chan frame)
	go func() {
		in := bufio.NewReader(s.o.In)
		for {
			body, err := readFrame(in)
			select {
			case frames <- frame{body, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case f := <-frames:
			done, err := s.take(ctx, f)
			if done {
				return err
			}
		}
	}
}

// take carries out one message, and says whether it was the last.
func (s *server) take(ctx context.Context, f frame) (done bool, err error) {
	switch {
	case errors.Is(f.err, io.EOF):
		return true, s.ended()
	case f.err != nil:
		var framing *FramingError
		if errors.As(f.err, &framing) {
			s.answer(nil, nil, rpcErrorf(codeParse, "%s", framing.Reason))
		}
		return true, f.err
	}
	m, bad := decode(f.body)
	switch {
	case bad != nil:
		s.answer(nil, nil, bad)
	case m.Method == "": // a response: this server asks nothing
	case m.Method == "exit":
		return true, s.ended()
	case m.isRequest():
		s.request(ctx, m)
	default:
		s.notification(m)
	}
	return false, nil
}

func (s *server) ended() error {
	if s.state == shutDown {
		return nil
	}
	return ErrNoShutdown
}

// answer replies to a request; where that is impossible the session ends.
func (s *server) answer(id json.RawMessage, result any, failed *rpcError) {
	if err := s.conn.reply(id, result, failed); err != nil {
		s.stop(fmt.Errorf("writing to the client: %w", err))
	}
}

func (s *server) request(ctx context.Context, m *message) {
	switch {
	case m.Method == "initialize" && s.state == fresh:
		result, err := s.initialize(m.Params)
		s.answer(m.ID, result, err)
		return
	case s.state == fresh:
		s.answer(m.ID, nil, rpcErrorf(codeNotInitialized, "%s: got it before initialize", m.Method))
		return
	case s.state == shutDown, m.Method == "initialize":
		s.answer(m.ID, nil, rpcErrorf(codeInvalidRequest, "%s: it is too late for that", m.Method))
		return
	case m.Method == "shutdown":
		s.state = shutDown
		s.closeAll()
		s.answer(m.ID, nil, nil)
		return
	}
	mk := s.make[m.Method]
	if mk == nil {
		s.answer(m.ID, nil, rpcErrorf(codeNoMethod, "%s: this server doesn't know it", m.Method))
		return
	}
	var h handler
	err := s.guard(m.Method, func() (err error) {
		h, err = mk(m.Params)
		return err
	})
	if err != nil {
		s.answer(m.ID, nil, asRPC(err))
		return
	}
	s.start(ctx, m, h)
}

// start runs a handler beside others.
func (s *server) start(ctx context.Context, m *message, h handler) {
	id := string(m.ID)
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	_, taken := s.pending[id]
	if !taken {
		s.pending[id] = cancel
	}
	s.mu.Unlock()
	if taken {
		cancel()
		s.answer(m.ID, nil, rpcErrorf(codeInvalidRequest, "a request of the id %s is being answered", id))
		return
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer cancel()
		var result any
		err := ctx.Err()
		select {
		case s.slots <- struct{}{}:
			err = s.guard(m.Method, func() (err error) {
				result, err = h(ctx)
				return err
			})
			<-s.slots
		case <-ctx.Done():
		}
		canceled := ctx.Err() != nil
		s.mu.Lock()
		delete(s.pending, id)
		s.mu.Unlock()
		switch {
		case canceled:
			s.answer(m.ID, nil, rpcErrorf(codeCanceled, "%s: canceled", m.Method))
		case err != nil:
			s.answer(m.ID, nil, asRPC(err))
		default:
			s.answer(m.ID, result, nil)
		}
	}()
}

func asRPC(err error) *rpcError {
	var e *rpcError
	if errors.As(err, &e) {
		return e
	}
	return rpcErrorf(codeInternal, "%s", err)
}

// guard makes an error of a panic, and logs it: it is never the client's fault.
func (s *server) guard(what string, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			s.log.Printf("internal error in %s: %v\n%s", what, v, debug.Stack())
			err = rpcErrorf(codeInternal, "internal error in %s: %v; this is a defect of mscclsh: please report it", what, v)
		}
	}()
	return do()
}

// cancel ends a request that is being answered.
func (s *server) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.pending[string(p.ID)]; cancel != nil {
		cancel()
	}
}

func (s *server) notification(m *message) {
	if m.Method == "$/cancelRequest" {
		s.cancel(m.Params)
		return
	}
	if s.state != running { // as the protocol demands
		return
	}
	var do func(json.RawMessage) error
	switch m.Method {
	case "textDocument/didOpen":
		do = s.didOpen
	case "textDocument/didChange":
		do = s.didChange
	case "textDocument/didClose":
		do = s.didClose
	case "textDocument/didSave":
		do = s.didSave
	case "workspace/didChangeWatchedFiles":
		do = s.didChangeFiles
	default: // a notification wants no answer, so one that isn't known gets none
		return
	}
	if err := s.guard(m.Method, func() error { return do(m.Params) }); err != nil {
		s.log.Printf("%s: %s", m.Method, err)
	}
}

// initialize agrees on what both sides can do.
func (s *server) initialize(params json.RawMessage) (any, *rpcError) {
	if err := unmarshal(params, &s.caps); err != nil {
		return nil, asRPC(err)
	}
	for _, e := range s.caps.Capabilities.General.PositionEncodings {
		if e == utf8Units.String() {
			s.enc = utf8Units
		}
	}
	s.state = running
	return initializeResult{
		Capabilities: capabilities{
			PositionEncoding:   s.enc.String(),
			TextDocumentSync:   syncOptions{OpenClose: true, Change: 2, Save: true},
			HoverProvider:      true,
			CompletionProvider: completionOptions{TriggerCharacters: []string{".", "\"", "'", "/", "@"}, ResolveProvider: true},
			SignatureHelp:      signatureOptions{TriggerCharacters: []string{"(", ","}},
			DefinitionProvider: true, SymbolProvider: true, FoldingProvider: true,
		},
		ServerInfo: serverInfo{Name: "mscclsh", Version: s.o.Version},
	}, nil
}

func unmarshal(params json.RawMessage, into any) error {
	if len(params) == 0 {
		return rpcErrorf(codeInvalidParams, "got no params")
	}
	if err := json.Unmarshal(params, into); err != nil {
		return rpcErrorf(codeInvalidParams, "the params don't fit: %s", err)
	}
	return nil
}
