package lab

import "time"

// On says which boxes of a fleet may carry out a plan. A box by itself refuses it.
type On struct {
	Boxes  []string `json:"boxes,omitempty" maxItems:"100" doc:"Names of boxes: any of these, and without them any box" example:"lab-1"`
	Labels []string `json:"labels,omitempty" maxItems:"20" doc:"What the box or the device must have, each as KEY=PATTERN, where * stands for any characters" example:"model=Pixel*"`
	Each   string   `json:"each,omitempty" enum:"box,browser" doc:"Makes several runs of the plan. box: one on each box that fits; browser: one in each browser that a box which fits has. They are judged each for itself"`
	// Priority is bounded so that nobody can push ahead of reference runs.
	Priority int `json:"priority,omitempty" minimum:"1" maximum:"3" default:"2" doc:"1 is carried out before 2, and 2 before 3; runs of equal priority take turns by their names"`
}

// BoxState says which box of a fleet carried out a run, and how far its numbers can be trusted beside those of
// another one.
type BoxState struct {
	Name        string       `json:"name" doc:"Name of the box" example:"lab-1"`
	ID          string       `json:"id" doc:"Identifier that the head gave it"`
	Health      string       `json:"health,omitempty" doc:"What the head knew of the box's health when the run ended: unknown, good, drifting, bad or maintenance"`
	Calibration *Calibration `json:"calibration,omitempty" doc:"What the box measured of the fleet's reference before the run"`
}

// Calibration is what a box and device measured of a reference, which every box of the fleet measures: the same plan
// and the same recording. Two of the same reference say by how much the boxes differ.
type Calibration struct {
	Reference string             `json:"reference" doc:"Identifies plan and recording of the reference"`
	Until     time.Time          `json:"until" doc:"When the newest of its runs was made"`
	Runs      int                `json:"runs" doc:"How many reference runs it rests on"`
	Levels    []CalibrationLevel `json:"levels"`
}

// CalibrationLevel is the level of one metric over reference runs.
type CalibrationLevel struct {
	Metric string  `json:"metric"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median" doc:"Median of the runs' medians"`
	// Between is what a difference of two boxes must take into account.
	Between float64 `json:"between" doc:"Standard deviation of the runs' medians, robust"`
	Within  float64 `json:"within" doc:"Median of the runs' standard deviations"`
	Runs    int     `json:"runs" doc:"How many runs have the metric"`
	Trials  int     `json:"trials" doc:"Median of their numbers of valid trials"`
}
