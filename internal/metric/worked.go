package metric

// worked are the entries of what a browser's own trace tells of the main threads of pages.
func worked(m ID) Entry {
	e := map[ID]Entry{
		MainWork: {Name: "main_thread_ms", Label: "Main thread's work", Says: "The page's main thread worked for",
			Short: "What the page's own thread computed",
			Method: "self time (processor time) of the main threads of pages from the input to the last visual change, by the " +
				"browser's trace"},
		ScriptWork: {Name: "script_ms", Label: "Scripts' work", Says: "The page's scripts worked for",
			Short:  "Compiling and running scripts",
			Method: "the part of main_thread_ms that compiles and runs scripts"},
		LayoutWork: {Name: "style_layout_ms", Label: "Style and layout", Says: "Style and layout took",
			Short:  "Computing styles and places",
			Method: "the part of main_thread_ms that is style and layout"},
		PaintWork: {Name: "paint_ms", Label: "Paint", Says: "Painting took",
			Short:  "Painting and compositing on the page's thread",
			Method: "the part of main_thread_ms that paints and composites"},
	}[m]
	e.Unit, e.Better, e.Scope, e.Groups, e.Doc = "ms", Lower, OfLoad, []string{Work}, docWork
	return e
}
