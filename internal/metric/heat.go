package metric

// meanChanges is the heat of the heat map as one number.
func meanChanges() Entry {
	return Entry{Name: "mean_changes", Unit: "changes", Label: "Heat",
		Short:  "How often a place of the screen changed, on average",
		Method: "mean, over all pixels of the content, of how often each changed: the heat of the heat map; its difference between arms tells which draws more",
		Better: Lower, Scope: OfLoad, Groups: []string{Load}, Doc: docLoads}
}
