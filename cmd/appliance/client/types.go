package client

import (
	"eidetic/internal/box/automation"
	"eidetic/internal/box/credentials"
	"eidetic/internal/keep/store"
	"eidetic/internal/lab"
	"eidetic/internal/web/panel"
)

// The types that come over REST, under names that programs outside this module may use: Go
// keeps the packages below internal from them, but not these aliases. docs/api.md explains
// the fields.
type (
	Health     = panel.Health
	Device     = panel.Device
	Plan       = lab.Plan
	Arm        = lab.Arm
	Step       = lab.Step
	Run        = lab.Run
	Trial      = lab.Trial
	Note       = panel.Note
	Runs       = panel.Runs
	RunEntry   = store.Entry
	File       = panel.File
	Archive    = panel.Archive
	Workflow   = automation.Workflow
	Schedule   = automation.Schedule
	Timing     = automation.Timing
	Firing     = automation.Firing
	Webhook    = automation.Hook
	NewWebhook = panel.NewWebhook
	Delivery   = automation.Delivery
	Alert      = automation.Alert
	Token      = credentials.Token
	Secret     = lab.Secret
	NewToken   = panel.NewToken
	Scope      = credentials.Scope
	History    = panel.Histories

	SeriesHistory = panel.SeriesHistory
)

// The scopes of tokens.
const (
	ScopeRead  = credentials.Read
	ScopeRun   = credentials.Run
	ScopeAdmin = credentials.Admin
)

// The states of a run.
const (
	StateQueued      = store.StateQueued
	StateRunning     = store.StateRunning
	StateDone        = store.StateDone
	StateFailed      = store.StateFailed
	StateInterrupted = store.StateInterrupted
)

// NewSecret keeps a token, or the value of a cookie, so that it is not printed by chance.
func NewSecret(text string) Secret { return lab.NewSecret(text) }
