package main

import (
	"fmt"

	"eidetic/internal/tell/terminal"
	"eidetic/netlab/archive"
)

// ArchiveCmd shows recordings of the network and changes them.
type ArchiveCmd struct {
	Ls     ArchiveLsCmd     `cmd:"" help:"List the exchanges." example:"appliance archive ls --url '*.js' shop.wacz"`
	Cat    ArchiveCatCmd    `cmd:"" help:"Print one body, decoded, or the headers." example:"appliance archive cat shop.wacz 12 --headers"`
	Verify ArchiveVerifyCmd `cmd:"" help:"Check hashes and judge the recording's quality. Exit status 1 when it is unfit." example:"appliance archive verify shop.wacz"`
	Rm     ArchiveRmCmd     `cmd:"" help:"Remove exchanges." example:"appliance archive rm shop.wacz --url '*://ads.example/*'"`
	Edit   ArchiveEditCmd   `cmd:"" help:"Change answers: status, header fields, body, delay." example:"appliance archive edit shop.wacz --url '*/hero.jpg' --first-byte 2s"`
	Trim   ArchiveTrimCmd   `cmd:"" help:"Keep only what is asked for or was used." example:"appliance archive trim shop.wacz --used trials/001/replay.jsonl"`
	Merge  ArchiveMergeCmd  `cmd:"" help:"Join recordings into a new one." example:"appliance archive merge all.wacz a.wacz b.wacz"`
	Import ArchiveImportCmd `cmd:"" help:"Make an archive from a WARC, a WACZ, a HAR, a .wprgo or a cut-off recording." example:"appliance archive import shop.wacz shop.har"`
	Export ArchiveExportCmd `cmd:"" help:"Write a WARC, a HAR, a .wprgo or a WACZ." example:"appliance archive export shop.wacz --out shop.har"`
}

// selection chooses exchanges.
type selection struct {
	URL []string `name:"url" help:"Exchanges whose URL has this text, or matches it if it has a *. Repeatable." placeholder:"PATTERN"`
	ID  []string `name:"id" help:"The exchange with this number, or whose ID ends so. Repeatable." placeholder:"N|ID"`
}

// chosen is the selection without its flags.
func (s selection) chosen() archive.Selection { return archive.Selection(s) }

// partial is the flag of commands that make an archive or another file of an archive.
type partial struct {
	Partial bool `help:"Go on although something cannot be read or written, with what is left; without it that ends with status 1, and writes nothing."`
}

// read is readWithin for such a command: what could not be read would be lost without a word.
func (p partial) read(std *streams, path string, l archive.Limits) (*archive.Archive, error) {
	a, err := readWithin(std, path, l)
	if err != nil || p.Partial {
		return a, err
	}
	switch {
	case a.Lost() > 0:
		return nil, p.lost(path, a)
	case len(a.Exchanges()) == 0:
		return nil, failed(fmt.Errorf("%s has no exchanges: nothing is written; --partial goes on", path))
	}
	return a, nil
}

// lost says that nothing is made of an archive that lacks something.
func (partial) lost(path string, a *archive.Archive) error {
	return failed(fmt.Errorf("%s: %d exchanges or damaged parts cannot be read (above): nothing is written; --partial goes on without them",
		path, a.Lost()))
}

// readArchive reads a recording for a command; warnings go to the person.
func readArchive(std *streams, path string) (*archive.Archive, error) {
	return readWithin(std, path, archive.Limits{})
}

func readWithin(std *streams, path string, l archive.Limits) (*archive.Archive, error) {
	return readWith(archive.OpenWithin, std, path, l)
}

// readWith is readWithin with another way to open the file.
func readWith(
	open func(string, archive.Limits) (*archive.Archive, error), std *streams, path string, l archive.Limits,
) (*archive.Archive, error) {
	a, err := open(path, l)
	if err != nil {
		return nil, usage(err)
	}
	for _, w := range a.Warnings() {
		fmt.Fprintf(std.err, "appliance: %s: %s\n", path, terminal.OneLine(w))
	}
	return a, nil
}
