package jupyter

// history is what was run in this session.
type history struct {
	cells []pastCell
}

type pastCell struct {
	count int
	code  string
}

type historyRequest struct {
	Output  bool   `json:"output"`
	Access  string `json:"hist_access_type"`
	Session int    `json:"session"`
	Start   int    `json:"start"`
	Stop    int    `json:"stop"`
	N       int    `json:"n"`
	Pattern string `json:"pattern"`
	Unique  bool   `json:"unique"`
}

// find gives the cells that a request asks for, as the protocol wants them: each
// with a session, a count and its text.
func (h *history) find(r *historyRequest) [][3]any {
	var list []pastCell
	for i, c := range h.cells {
		switch r.Access {
		case "range":
			if r.Session != 0 || c.count < r.Start || r.Stop > 0 && c.count >= r.Stop {
				continue
			}
		case "search":
			if r.Pattern != "" && !glob(r.Pattern, c.code) || r.Unique && h.later(i, c.code) {
				continue
			}
		}
		list = append(list, c)
	}
	if r.Access != "range" && r.N > 0 && len(list) > r.N {
		list = list[len(list)-r.N:]
	}
	out := make([][3]any, 0, len(list))
	for _, c := range list {
		entry := [3]any{0, c.count, c.code}
		if r.Output {
			entry[2] = [2]any{c.code, nil}
		}
		out = append(out, entry)
	}
	return out
}

// later reports whether a cell after i has the same text.
func (h *history) later(i int, code string) bool {
	for _, c := range h.cells[i+1:] {
		if c.code == code {
			return true
		}
	}
	return false
}

// glob reports whether a pattern, in which * stands for any text and ? for one
// byte, is the whole text.
func glob(pattern, text string) bool {
	star, from := -1, 0 // the last *, and where what follows it was tried
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			from++
			p, t = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
