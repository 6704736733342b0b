package runtime

import (
	"github.com/mscclsh/mscclsh/internal/diag"
	"github.com/mscclsh/mscclsh/ir"
)

// CheckWindow refuses sizes for which the program was not declared safe (code
// size-window). What counts is what the program moves, padding included; nothing
// moved is always safe.
func (l *Layout) CheckWindow(p *ir.Program) error {
	n := l.PaddedBytes()
	if n == 0 || n >= p.MinBytes && (p.MaxBytes == 0 || n <= p.MaxBytes) {
		return nil
	}
	m := diag.Errorf(diag.Pos{}, "size-window", "run: %d bytes (%d with padding) are outside of the program's sizes, %d bytes and up",
		l.Bytes(), n, p.MinBytes)
	if p.MaxBytes > 0 {
		m = diag.Errorf(diag.Pos{}, "size-window", "run: %d bytes (%d with padding) are outside of the program's sizes, %d to %d bytes",
			l.Bytes(), n, p.MinBytes, p.MaxBytes)
	}
	return m.Suggest("take a size within, or compile for this one")
}
