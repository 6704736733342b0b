package jupyter

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// ProtocolVersion is that of the messaging protocol that is spoken here.
const ProtocolVersion = "5.3"

// delimiter ends the frames that say whom a message is for.
const delimiter = "<IDS|MSG>"

// Header says what a message is.
type Header struct {
	ID       string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	Date     string `json:"date"`
	Type     string `json:"msg_type"`
	Version  string `json:"version"`
}

// Message is one message of the protocol.
type Message struct {
	Route    [][]byte // whom a reply goes to, or the topic of a broadcast
	Header   Header
	Raw      json.RawMessage // the header as it came, for replies; nil of a new message
	Parent   json.RawMessage // the header of the request, nil for none
	Metadata json.RawMessage // nil is {}
	Content  json.RawMessage // nil is {}
	Buffers  [][]byte
}

// ParentType is the type of the message that this one answers, "" for none.
func (m *Message) ParentType() string { return m.parent().Type }

// ParentID is the name of the message that this one answers, "" for none.
func (m *Message) ParentID() string { return m.parent().ID }

func (m *Message) parent() (h Header) {
	_ = json.Unmarshal(m.Parent, &h) // none has no fields
	return h
}

// Codec turns messages into frames and back, with their signatures. Without a key
// there are none.
type Codec struct{ Key []byte }

var errSignature = errors.New("its signature is wrong")

// sign is the signature of the four parts of a message.
func (c Codec) sign(parts [][]byte) []byte {
	if len(c.Key) == 0 {
		return nil
	}
	mac := hmac.New(sha256.New, c.Key)
	for _, p := range parts {
		mac.Write(p)
	}
	return hex.AppendEncode(nil, mac.Sum(nil))
}

// Encode makes the frames of a message.
func (c Codec) Encode(m *Message) ([][]byte, error) {
	header := []byte(m.Raw)
	if header == nil {
		var err error
		if header, err = json.Marshal(m.Header); err != nil {
			return nil, fmt.Errorf("writing the header of a message: %w", err)
		}
	}
	parts := [][]byte{header, object(m.Parent), object(m.Metadata), object(m.Content)}
	frames := make([][]byte, 0, len(m.Route)+2+len(parts)+len(m.Buffers))
	frames = append(frames, m.Route...)
	frames = append(frames, []byte(delimiter), c.sign(parts))
	frames = append(frames, parts...)
	return append(frames, m.Buffers...), nil
}

func object(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("{}")
	}
	return raw
}

// Decode reads the frames of a message and checks its signature.
func (c Codec) Decode(frames [][]byte) (*Message, error) {
	at := 0
	for at < len(frames) && string(frames[at]) != delimiter {
		at++
	}
	if len(frames) < at+6 {
		return nil, fmt.Errorf("got a message of %d frames, want %s and five after it", len(frames), delimiter)
	}
	signature, parts := frames[at+1], frames[at+2:at+6]
	if want := c.sign(parts); want != nil && !hmac.Equal(bytes.ToLower(signature), want) {
		return nil, errSignature
	}
	m := &Message{Route: frames[:at], Raw: parts[0], Parent: parts[1], Metadata: parts[2], Content: parts[3], Buffers: frames[at+6:]}
	for i, name := range [...]string{"header", "parent header", "metadata", "content"} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(parts[i], &fields); err != nil {
			return nil, fmt.Errorf("reading the %s of a message: %w", name, err)
		}
	}
	if err := json.Unmarshal(m.Raw, &m.Header); err != nil {
		return nil, fmt.Errorf("reading the header of a message: %w", err)
	}
	if m.Header.Type == "" {
		return nil, errors.New("got a message without a type")
	}
	return m, nil
}
