package jupyter

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zeromq/zmq4"
)

// How long things may take at the end.
const (
	endPatience   = 2 * time.Second        // for a cell that was told to end
	linger        = 200 * time.Millisecond // for broadcasts on their way: a PUB socket doesn't say when it has sent all
	closePatience = time.Second            // for sockets, whose Close can wait for a peer that reads nothing
	abortWait     = 30 * time.Millisecond  // for cells that were sent together with one that failed
)

// Options are what a kernel needs beside its connection.
type Options struct {
	Engine Engine
	Info   Info
	Log    io.Writer        // what goes wrong in the kernel itself
	Now    func() time.Time // nil is time.Now
	Wake   <-chan struct{}  // each value ends the cell that runs, as an interrupt does
	Ready  func()           // called when the sockets are there; may be nil
}

// Server is a kernel that runs.
type Server struct {
	o       Options
	codec   Codec
	session string
	count   atomic.Uint64 // of messages
	log     *log.Logger

	shell, control, stdin, heartbeat, iopub zmq4.Socket

	requests *queue
	cells    int // that were counted
	past     history

	mu     sync.Mutex
	cancel context.CancelFunc // of the cell that runs, or nil
	end    chan struct{}      // closed when the kernel is to end
	ending sync.Once
}

// Serve runs a kernel until a client shuts it down, a cell quits, or ctx is done.
// Cells that don't end then are left alone: the caller ends the process.
func Serve(ctx context.Context, c *Connection, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{o: o, codec: Codec{[]byte(c.Key)}, session: newID(), requests: newQueue(), end: make(chan struct{}),
		log: log.New(o.Log, "mscclsh kernel: ", 0)}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// The sockets outlive ctx: the last messages say that the kernel ends.
	life, die := context.WithCancel(context.WithoutCancel(ctx))
	defer die()
	if err := s.listen(life, c); err != nil {
		s.closeSockets()
		return err
	}
	s.broadcast(nil, "status", statusContent{"starting"})
	worked := s.start(ctx, life)
	if o.Ready != nil {
		o.Ready()
	}
	select {
	case <-ctx.Done():
	case <-s.end:
	}
	stop()
	s.requests.close()
	select {
	case <-worked:
	case <-time.After(endPatience):
		s.log.Print("the running cell doesn't end; it is left behind")
	}
	time.Sleep(linger)
	die() // first, so that nobody takes the end for a failure
	s.closeSockets()
	return nil
}

// start begins everything that goes on at the same time. What it returns is closed
// when no cell runs any more.
func (s *Server) start(ctx, life context.Context) <-chan struct{} {
	go s.echo(life)
	go s.receive(life, s.stdin, func(*Message) {}) // nothing was asked
	go s.receive(life, s.control, func(m *Message) { s.beside(ctx, m) })
	go s.receive(life, s.shell, s.requests.push)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.o.Wake:
				s.interrupt()
			}
		}
	}()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		for {
			q, more := s.requests.pop()
			if !more {
				return
			}
			s.handle(ctx, s.shell, q.msg, q.aborted)
		}
	}()
	return worked
}

// listen opens the sockets. The heartbeat's is a router too: it sends back what
// comes.
func (s *Server) listen(ctx context.Context, c *Connection) error {
	for _, x := range []struct {
		make func(context.Context, ...zmq4.Option) zmq4.Socket
		to   *zmq4.Socket
		name string
		port int
	}{
		{zmq4.NewRouter, &s.shell, "shell", c.Shell},
		{zmq4.NewRouter, &s.control, "control", c.Control},
		{zmq4.NewRouter, &s.stdin, "stdin", c.Stdin},
		{zmq4.NewRouter, &s.heartbeat, "heartbeat", c.Heartbeat},
		{zmq4.NewPub, &s.iopub, "iopub", c.IOPub},
	} {
		socket := x.make(ctx, zmq4.WithLogger(s.log))
		if err := socket.Listen(c.Endpoint(x.port)); err != nil {
			return fmt.Errorf("opening the %s socket: %w", x.name, err) // it is not among those to close
		}
		*x.to = socket
	}
	return nil
}

// closeSockets closes what is open, as far as that ends.
func (s *Server) closeSockets() {
	var closing sync.WaitGroup
	for _, socket := range []zmq4.Socket{s.shell, s.control, s.stdin, s.heartbeat, s.iopub} {
		if socket == nil {
			continue
		}
		closing.Go(func() {
			if err := socket.Close(); err != nil {
				s.log.Printf("closing a socket: %v", err)
			}
		})
	}
	closed := make(chan struct{})
	go func() {
		closing.Wait()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(closePatience):
	}
}

// beside answers what comes over the control socket, while a cell may run.
func (s *Server) beside(ctx context.Context, m *Message) {
	switch m.Header.Type {
	case "kernel_info_request", "interrupt_request", "shutdown_request":
		s.handle(ctx, s.control, m, false)
	default:
		s.log.Printf("got %s on the control socket, which isn't for it", m.Header.Type)
	}
}

// echo answers heartbeats.
func (s *Server) echo(ctx context.Context) {
	for ctx.Err() == nil {
		m, err := s.heartbeat.Recv()
		if err != nil {
			s.failed(ctx, "receiving a heartbeat", err)
			continue
		}
		if err := s.heartbeat.Send(zmq4.NewMsgFrom(m.Frames...)); err != nil {
			s.failed(ctx, "answering a heartbeat", err)
		}
	}
}

// receive hands on the messages of a socket, without those that aren't signed as
// they should be.
func (s *Server) receive(ctx context.Context, socket zmq4.Socket, to func(*Message)) {
	for ctx.Err() == nil {
		raw, err := socket.Recv()
		if err != nil {
			s.failed(ctx, "receiving a message", err)
			continue
		}
		m, err := s.codec.Decode(raw.Frames)
		if err != nil {
			s.log.Printf("dropped a message: %v", err)
			continue
		}
		to(m)
	}
}

// failed notes an error of a socket that hasn't been closed.
func (s *Server) failed(ctx context.Context, doing string, err error) {
	if ctx.Err() == nil {
		s.log.Printf("%s: %v", doing, err)
		time.Sleep(10 * time.Millisecond) // it may go on failing
	}
}

// finish begins the end of the kernel.
func (s *Server) finish() { s.ending.Do(func() { close(s.end) }) }

// interrupt ends the cell that runs, if one does.
func (s *Server) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

// running gives a cell its context; done forgets it.
func (s *Server) running(ctx context.Context) (cell context.Context, done func()) {
	cell, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	return cell, func() {
		s.mu.Lock()
		s.cancel = nil
		s.mu.Unlock()
		cancel()
	}
}

type statusContent struct {
	State string `json:"execution_state"`
}

// message makes one that answers parent, nil for none.
func (s *Server) message(parent *Message, kind string, content any) *Message {
	m := &Message{Header: Header{ID: fmt.Sprintf("%s_%d", s.session, s.count.Add(1)), Session: s.session, Username: "kernel",
		Date: s.o.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), Type: kind, Version: ProtocolVersion}}
	if parent != nil {
		m.Parent = parent.Raw
	}
	body, err := json.Marshal(content)
	if err != nil { // contents are made of texts and numbers
		s.log.Printf("writing a %s: %v", kind, err)
		return m
	}
	m.Content = body
	return m
}

// broadcast tells all clients.
func (s *Server) broadcast(parent *Message, kind string, content any) {
	m := s.message(parent, kind, content)
	m.Route = [][]byte{[]byte("kernel." + s.session + "." + kind)}
	frames, err := s.codec.Encode(m)
	if err == nil {
		err = s.iopub.SendMulti(zmq4.NewMsgFrom(frames...))
	}
	if err != nil {
		s.log.Printf("sending a %s: %v", kind, err)
	}
}

// reply answers a request.
func (s *Server) reply(to zmq4.Socket, request *Message, kind string, content any) {
	m := s.message(request, kind, content)
	m.Route = request.Route
	frames, err := s.codec.Encode(m)
	if err == nil {
		err = to.Send(zmq4.NewMsgFrom(frames...))
	}
	if err != nil {
		s.log.Printf("sending a %s: %v", kind, err)
	}
}

// newID is a name that no other has.
func newID() string { return rand.Text() }
