package jupyter

import (
	"context"
	"fmt"
	"time"
)

type executeRequest struct {
	Code        string            `json:"code"`
	Silent      bool              `json:"silent"`
	Store       *bool             `json:"store_history"` // true unless it is silent
	Expressions map[string]string `json:"user_expressions"`
	StopOnError *bool             `json:"stop_on_error"` // true if not given
}

type inputContent struct {
	Code  string `json:"code"`
	Count int    `json:"execution_count"`
}

type resultContent struct {
	Count    int               `json:"execution_count"`
	Data     map[string]string `json:"data"`
	Metadata struct{}          `json:"metadata"`
}

// errorContent is a broadcast about an error.
type errorContent struct {
	Name  string   `json:"ename"`
	Value string   `json:"evalue"`
	Trace []string `json:"traceback"`
}

// failedContent answers a request that failed.
type failedContent struct {
	Status string `json:"status"`
	Count  int    `json:"execution_count"`
	errorContent
}

type executeContent struct {
	Status      string              `json:"status"`
	Count       int                 `json:"execution_count"`
	Payload     []payload           `json:"payload"`
	Expressions map[string]exprPart `json:"user_expressions"`
}

type payload struct {
	Source string `json:"source"`
	Keep   bool   `json:"keepkernel"`
}

// exprPart is the value of an expression that a client asked for, or its error.
type exprPart struct {
	Status   string            `json:"status"`
	Data     map[string]string `json:"data,omitempty"`
	Metadata *struct{}         `json:"metadata,omitempty"`
	Name     string            `json:"ename,omitempty"`
	Value    string            `json:"evalue,omitempty"`
	Trace    []string          `json:"traceback,omitempty"`
}

// execute runs a cell.
func execute(ctx context.Context, r *request) error {
	if r.aborted {
		r.reply("execute_reply", okContent{"aborted"})
		return nil
	}
	var c executeRequest
	if err := r.read(&c); err != nil {
		return err
	}
	s := r.s
	if !c.Silent && (c.Store == nil || *c.Store) {
		s.cells++
		s.past.cells = append(s.past.cells, pastCell{s.cells, c.Code})
	}
	if !c.Silent {
		r.broadcast("execute_input", inputContent{c.Code, s.cells})
	}
	result := s.runCell(ctx, r, &c)
	if result.Value != "" && !c.Silent {
		r.broadcast("execute_result", resultContent{Count: s.cells, Data: map[string]string{"text/plain": result.Value}})
	}
	if e := result.Err; e != nil {
		about := errorContent{e.Name, e.Value, append([]string{}, e.Trace...)}
		if !c.Silent {
			r.broadcast("error", about)
		}
		if c.StopOnError == nil || *c.StopOnError {
			time.Sleep(abortWait)
			s.requests.abort()
		}
		r.reply("execute_reply", failedContent{"error", s.cells, about})
	} else {
		answer := executeContent{Status: "ok", Count: s.cells, Payload: []payload{}, Expressions: s.evaluate(c.Expressions)}
		if result.Quit {
			answer.Payload = append(answer.Payload, payload{Source: "ask_exit"})
		}
		r.reply("execute_reply", answer)
	}
	if result.Quit {
		s.finish()
	}
	return nil
}

// runCell runs the text of a cell, which an interrupt ends.
func (s *Server) runCell(ctx context.Context, r *request, c *executeRequest) (result Result) {
	cell, done := s.running(ctx)
	defer done()
	out := &output{send: r.broadcast}
	defer out.end()
	var to Output = out
	if c.Silent {
		to = silent{}
	}
	err := s.guard(func() error {
		result = s.o.Engine.Execute(cell, c.Code, to)
		return nil
	})
	if err != nil {
		result = Result{Err: &CellError{Name: "InternalError", Value: "the kernel failed", Trace: []string{err.Error()}}}
	}
	return result
}

// evaluate is what a client wants to know after a cell that went well.
func (s *Server) evaluate(expressions map[string]string) map[string]exprPart {
	out := map[string]exprPart{}
	for name, expr := range expressions {
		text, err := s.o.Engine.Evaluate(expr)
		if err != nil {
			line := fmt.Sprint(err)
			out[name] = exprPart{Status: "error", Name: "ValueError", Value: line, Trace: []string{line}}
			continue
		}
		out[name] = exprPart{Status: "ok", Data: map[string]string{"text/plain": text}, Metadata: &struct{}{}}
	}
	return out
}
