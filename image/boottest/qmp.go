package boottest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// QMP is a connection to QEMU's machine protocol
// (https://www.qemu.org/docs/master/interop/qmp-spec.html).
type QMP struct {
	conn    net.Conn
	answers chan answer
	// Events delivers QEMU's asynchronous events by name: "WATCHDOG", "RESET".
	// The channel is bounded; the oldest events are dropped.
	Events chan string
}

type answer struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class, Desc string
	} `json:"error"`
	Event string `json:"event"`
}

func dialQMP(ctx context.Context, path string) (*QMP, error) {
	conn, err := dialUnix(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("QMP: %w", err)
	}
	q := &QMP{conn: conn, answers: make(chan answer, 1), Events: make(chan string, 64)}
	decoder := json.NewDecoder(conn)
	var greeting json.RawMessage
	if err := decoder.Decode(&greeting); err != nil {
		return nil, fmt.Errorf("QMP: greeting: %w", err)
	}
	go q.read(decoder)
	if _, err := q.Do(ctx, "qmp_capabilities", nil); err != nil {
		return nil, err
	}
	return q, nil
}

func (q *QMP) read(decoder *json.Decoder) {
	defer close(q.answers)
	for {
		var a answer
		if decoder.Decode(&a) != nil {
			return
		}
		if a.Event == "" {
			q.answers <- a
			continue
		}
		for sent := false; !sent; {
			select {
			case q.Events <- a.Event:
				sent = true
			default:
				select {
				case <-q.Events:
				default:
				}
			}
		}
	}
}

// Do runs a command and returns its answer: Do(ctx, "set_link",
// map[string]any{"name": "nic0", "up": false}) pulls a cable.
func (q *QMP) Do(ctx context.Context, command string, arguments map[string]any) (json.RawMessage, error) {
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(q.conn).Encode(request); err != nil {
		return nil, fmt.Errorf("QMP %s: %w", command, err)
	}
	select {
	case a, ok := <-q.answers:
		if !ok {
			return nil, fmt.Errorf("QMP %s: the machine is switched off", command)
		}
		if a.Error != nil {
			return nil, fmt.Errorf("QMP %s: %s: %s", command, a.Error.Class, a.Error.Desc)
		}
		return a.Return, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("QMP %s: %w", command, ctx.Err())
	}
}

// Forget drops the events that have arrived so far.
func (q *QMP) Forget() {
	for {
		select {
		case <-q.Events:
		default:
			return
		}
	}
}

// Wait returns when the event arrives, or at once if it has arrived and was not dropped by Forget.
func (q *QMP) Wait(ctx context.Context, event string) error {
	for {
		select {
		case e := <-q.Events:
			if e == event {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("no %s event from the machine: %w", event, ctx.Err())
		}
	}
}

func (q *QMP) close() { _ = q.conn.Close() }

// dialUnix connects to a socket that QEMU is about to create.
func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var d net.Dialer
	for {
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
