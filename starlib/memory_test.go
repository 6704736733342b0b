package starlib

import (
	"context"
	"testing"

	"github.com/mscclsh/mscclsh/internal/diag"
)

// A script that grows without end is stopped at its line with a sentence, long
// before the system stops the process.
func TestMemoryIsLimited(t *testing.T) {
	for name, text := range map[string]string{
		"a list that doubles":    "x = [0]\nwhile True:\n    x = x + x\n",
		"a list of everything":   "x = 1\nx = sorted(range(1 << 50))\n",
		"a string that doubles":  "x = 'a'\nwhile True:\n    x = x + x\n",
		"more and more of lists": "x = []\nwhile True:\n    x.append(list(range(10000)))\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(context.Background(), Options{File: "test.star", Source: []byte(text), MaxMemory: 256 << 20})
			l := diag.Messages(err)
			if len(l) != 1 || l[0].Code != "memory-limit" || l[0].Pos.File != "test.star" {
				t.Errorf("got %v, want a memory-limit in test.star", err)
			}
		})
	}
}
