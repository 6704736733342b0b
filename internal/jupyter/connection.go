package jupyter

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Connection is what a connection file says: where the sockets are, and the key
// of the signatures.
type Connection struct {
	Transport string `json:"transport"` // tcp or ipc
	IP        string `json:"ip"`        // an address, or the beginning of paths for ipc
	Shell     int    `json:"shell_port"`
	Control   int    `json:"control_port"`
	Stdin     int    `json:"stdin_port"`
	IOPub     int    `json:"iopub_port"`
	Heartbeat int    `json:"hb_port"`
	Key       string `json:"key"`
	Scheme    string `json:"signature_scheme"`
}

// ParseConnection reads a connection file.
func ParseConnection(text []byte) (*Connection, error) {
	c := &Connection{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("it is no connection file: %w", err)
	}
	if c.Transport == "" {
		c.Transport = "tcp"
	}
	switch {
	case c.Transport != "tcp" && c.Transport != "ipc":
		return nil, fmt.Errorf("transport: got %q, want tcp or ipc", c.Transport)
	case c.IP == "":
		return nil, errors.New("it names no ip")
	case c.Key != "" && c.Scheme != "hmac-sha256":
		return nil, fmt.Errorf("signature_scheme: got %q, want hmac-sha256", c.Scheme)
	}
	for _, p := range c.ports() {
		if p.number < 1 || c.Transport == "tcp" && p.number > 65535 {
			return nil, fmt.Errorf("%s_port: got %d, want 1 to 65535", p.name, p.number)
		}
	}
	return c, nil
}

type port struct {
	name   string
	number int
}

func (c *Connection) ports() []port {
	return []port{{"shell", c.Shell}, {"control", c.Control}, {"stdin", c.Stdin}, {"iopub", c.IOPub}, {"hb", c.Heartbeat}}
}

// Endpoint is where the socket of a port is.
func (c *Connection) Endpoint(port int) string {
	if c.Transport == "ipc" {
		return fmt.Sprintf("ipc://%s-%d", c.IP, port)
	}
	return "tcp://" + net.JoinHostPort(c.IP, strconv.Itoa(port))
}
