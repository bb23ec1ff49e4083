package main

import (
	"fmt"
	"io"
	"strings"

	"eidetic/internal/lab"
	"eidetic/internal/rigs/benchtable"
)

// goal returns the goals of our speed and ratio; 0 is no goal.
func (c class) goal(threads int) (speed, ratio float64) {
	if c.format.Pixels != lab.BGRX {
		return 0, 0
	}
	g := goals[c.scene]
	if threads == 2 {
		return g.two, g.ratio
	}
	return g.one, g.ratio
}

// line is one of the table.
const line = "%-16s %-6s %-8s %7s %7s %8s %9s  %s\n"

// print writes the class's lines of the table, and names the peers that beat us in both.
func (c class) print(w io.Writer) {
	for _, m := range c.all {
		seek, goal := "", ""
		if m.codec == reelName {
			seek = fmt.Sprintf("%.0f", m.seek)
			goal = c.verdict(m)
		}
		fmt.Fprintf(w, line, c.scene, c.format.Pixels, m.codec, fmt.Sprint(m.threads), fmt.Sprintf("%.0f", m.speed),
			fmt.Sprintf("%.1f", m.ratio), seek, goal)
	}
	for _, name := range c.above() {
		fmt.Fprintf(w, "%s, %s: %s is both faster and smaller\n", c.scene, c.format.Pixels, name)
	}
}

// verdict returns the goals and whether they are met, as text.
func (c class) verdict(m measured) string {
	speed, ratio := c.goal(m.threads)
	var words []string
	for _, g := range []struct {
		want, got float64
		unit      string
	}{{speed, m.speed, "MB/s"}, {ratio, m.ratio, ": 1"}} {
		if g.want == 0 {
			continue
		}
		word := "met"
		if g.got < g.want {
			word = "MISSED"
		}
		words = append(words, fmt.Sprintf("%g %s %s", g.want, g.unit, word))
	}
	if m.seek > goalSeek {
		words = append(words, fmt.Sprintf("seek within %d ms MISSED", goalSeek))
	}
	return strings.Join(words, ", ")
}

// one returns our measurement on one thread.
func (c class) one() measured {
	for _, m := range c.all {
		if m.codec == reelName && m.threads == 1 {
			return m
		}
	}
	return measured{}
}

// above lists the peers that are both faster and smaller than ours on one thread.
func (c class) above() []string {
	var names []string
	us := c.one()
	for _, m := range c.all {
		if m.codec != reelName && m.speed >= us.speed && m.ratio >= us.ratio {
			names = append(names, m.codec)
		}
	}
	return names
}

// results are the lines of capture.json; the peer is the fastest one.
func results(classes []class) []benchtable.Result {
	var list []benchtable.Result
	for _, c := range classes {
		var best measured
		for _, m := range c.all {
			if m.codec != reelName && m.speed > best.speed {
				best = m
			}
		}
		for _, m := range c.all {
			if m.codec != reelName {
				continue
			}
			speedGoal, ratioGoal := c.goal(m.threads)
			name := fmt.Sprintf("reel-%s-%s-%d", c.scene, strings.ToLower(string(c.format.Pixels)), m.threads)
			speed := benchtable.More(name+"-speed", m.speed, "MB/s").AimAbove(speedGoal)
			ratio := benchtable.More(name+"-ratio", m.ratio, "1").AimAbove(ratioGoal)
			if best.speed > 0 {
				speed, ratio = speed.Against("ffmpeg "+best.codec, best.speed), ratio.Against("ffmpeg "+best.codec, best.ratio)
			}
			list = append(list, speed, ratio, benchtable.Less(name+"-seek", m.seek, "ms").Aim(goalSeek))
		}
	}
	return list
}
