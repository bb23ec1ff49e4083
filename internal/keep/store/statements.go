package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// mostStatements bounds what a connection keeps.
const mostStatements = 300

// openKeeping opens a database whose connections keep the statements that they were given before: to parse and plan
// them each time costs a third of a short transaction.
func openKeeping(dsn string) (*sql.DB, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(keeping{c}), nil
}

// keeping is a connector of SQLite, with kept statements.
type keeping struct{ driver.Connector }

// Connect implements driver.Connector.
func (k keeping) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	own, ok := c.(sqliteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T lacks a method of a connection", c), c.Close())
	}
	return &keepingConn{own, map[string]*statement{}}, nil
}

// sqliteConn is what database/sql asks of a connection.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// keepingConn is a connection. database/sql lets one goroutine at a time call it.
type keepingConn struct {
	sqliteConn
	all map[string]*statement
}

// statement is one that was given before. It is prepared when it is given again: most of those that are given once,
// such as migrations, never are.
type statement struct {
	prepared driver.Stmt // nil until then
	busy     bool        // rows of it are open
}

// find returns a statement that is free, or nil for one that is prepared for this call alone.
func (c *keepingConn) find(ctx context.Context, text string) (*statement, error) {
	s, known := c.all[text]
	switch {
	case !known:
		if len(c.all) < mostStatements {
			c.all[text] = &statement{}
		}
		return nil, nil
	case s.busy:
		return nil, nil
	case s.prepared == nil:
		var err error
		if s.prepared, err = c.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// ExecContext implements driver.ExecerContext.
func (c *keepingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.find(ctx, text)
	if err != nil {
		return nil, err
	}
	if s != nil {
		if own, ok := s.prepared.(driver.StmtExecContext); ok {
			return own.ExecContext(ctx, args)
		}
	}
	return c.sqliteConn.ExecContext(ctx, text, args)
}

// QueryContext implements driver.QueryerContext.
func (c *keepingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.find(ctx, text)
	if err != nil {
		return nil, err
	}
	if s != nil {
		if own, ok := s.prepared.(driver.StmtQueryContext); ok {
			rows, err := own.QueryContext(ctx, args)
			if err != nil {
				return nil, err
			}
			s.busy = true
			return &keptRows{rows, s}, nil
		}
	}
	return c.sqliteConn.QueryContext(ctx, text, args)
}

// Close implements driver.Conn.
func (c *keepingConn) Close() error {
	var err error
	for _, s := range c.all {
		if s.prepared != nil {
			err = errors.Join(err, s.prepared.Close())
		}
	}
	return errors.Join(err, c.sqliteConn.Close())
}

// keptRows are rows whose statement is kept.
type keptRows struct {
	driver.Rows
	of *statement
}

// Close implements driver.Rows.
func (r *keptRows) Close() error {
	r.of.busy = false
	return r.Rows.Close()
}
