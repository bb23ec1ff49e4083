package report

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"eidetic/internal/lab"
	"eidetic/internal/metric"
	"eidetic/internal/tell/report/reporttest"
)

// saved opens a page of a report with its first trial, and returns what reporttest.Charts says of it, and of each file
// that it offers the name, the number of lines and the first two.
const saved = `(async () => {` + reporttest.Charts + `
	const files = [], create = URL.createObjectURL;
	let blob = null, name = "";
	URL.createObjectURL = b => { blob = b; return create.call(URL, b); };
	HTMLAnchorElement.prototype.click = function () { name = this.download; };
	const trial = document.querySelector("details.trial");
	if (trial) trial.open = true;
	for (const end = performance.now() + 60000; performance.now() < end && trial && !trial.querySelector(".log-table tbody tr");) await new Promise(requestAnimationFrame);
	const said = await charts();
	for (const button of document.querySelectorAll("[data-download]")) {
		button.click();
		const lines = (await blob.text()).split("\r\n");
		files.push([name === button.dataset.download ? name : "another name", lines.length - 2, ...lines.slice(0, 2)].join("|"));
	}
	return [said.join(" "), ...files];
})()`

// TestChartsHaveTablesAndFiles: for each chart of a report there is a table, and a file that the page makes by itself,
// from disk.
func TestChartsHaveTablesAndFiles(t *testing.T) {
	b := browsers.New(t)
	two := reporttest.Compared(4, 6, 100)
	two.Trials[1].Measurements = slices.DeleteFunc(two.Trials[1].Measurements, func(m lab.Measurement) bool { return m.Name == metric.SpeedIndex.String() })
	two.Trials[0].Spans = []*lab.Span{{Name: "=pay", Level: "objective", Start: two.Trials[0].StartTime, End: two.Trials[0].StartTime + 400e6}}
	dir, _ := write(t, two, reporttest.Options{})
	many, _ := write(t, reporttest.Many(2, 8, 400), reporttest.Options{})
	journey, _ := write(t, journeyRun(), reporttest.Options{})
	for _, c := range []struct {
		name, page string
		want       []string
	}{
		{"report", filepath.Join(dir, FileName), []string{"4",
			"20261121-101400-links-curves.csv|272|trial,arm,valid,frame,time_ms,load_percent,visual_progress_percent|1,treatment,true,69,0,22.4,0",
			"20261121-101400-links-trials.csv|12|" +
				"trial,arm,valid,time_to_stable_ms,first_visual_change_ms,last_visual_change_ms,speed_index_ms,unique_fps|" +
				"1,treatment,true,1500,600,1733.3333333333335,870.3833333333331,22.54602928592341",
			`20261121-101400-links-trial-1-events.csv|4|What,Kind,"From, ms","To, ms"|sync: the whole content area was green,event,-160.0,-143.0`,
			"20261121-101400-links-trial-1-requests.csv|62|" +
				"start_ms,method,url,protocol,stage,score,status,bytes,first_byte_ms,total_ms,note|" +
				"40,GET,https://www.shop.example/,h2,exact,1,200,30388,89.058,124.173,",
		}},
		{"timelines", filepath.Join(dir, TimelineName), []string{"3",
			"20261121-101400-links-run-graph.csv|6|" +
				"name,control_total_ms,control_self_ms,control_times,treatment_total_ms,treatment_self_ms,treatment_times," +
				"difference_ms,low_ms,high_ms|" +
				"Load the shop,1611.1,506.6,1,1402.8,449.5,0.833,61.1,-1583.3,100",
			`20261121-101400-links-trial-3-timeline.csv|91|` +
				`track,name,start_ms,lasts_ms,start_may_be_earlier_by_ms,start_may_be_later_by_ms,facts|` +
				`Screen,frame 103,533.333,133.334,16.666,0,"as at the end: 41.2 %, visual progress: 38.5 %"`,
			`20261121-101400-links-trial-4-timeline.csv|91|` +
				`track,name,start_ms,lasts_ms,start_may_be_earlier_by_ms,start_may_be_later_by_ms,facts|` +
				`Screen,frame 107,583.333,116.667,16.666,0,"as at the end: 41.2 %, visual progress: 38.5 %"`,
		}},
		{"many", filepath.Join(many, FileName), []string{"1",
			"20261121-111400-many-changes.csv|28|" +
				"page_and_user,address,metric,unit,pairs,finding,control,treatment,change,low,high,change_percent,low_percent," +
				"high_percent,p_corrected|" +
				"All together,,speed_index_ms,%,48,slower,100,102.88851136684843,2.888511366848435,0.9911076211294585," +
				"6.787071032916633,2.888511366848435,0.9911076211294585,6.787071032916633,0.014285714292000018",
		}},
		{"journey", filepath.Join(journey, FileName), []string{"5",
			"20261121-091400-demo-step-1.csv|9|trial,arm,valid,time_ms,load_percent|1,control,true,0,0",
			"20261121-091400-demo-step-3.csv|60|arm,answered_after_ms,share_percent|control,40.294,1.667",
			"20261121-091400-demo-trials.csv|3|" +
				"trial,arm,valid,time_to_stable_ms,first_visual_change_ms,last_visual_change_ms,speed_index_ms,unique_fps|" +
				"1,control,true,1333.3333333333335,500.00000000000006,1566.6666666666667,758.2166666666669,21.25589252480296",
			`20261121-091400-demo-trial-1-events.csv|8|What,Kind,"From, ms","To, ms"|sync: the whole content area was green,event,-160.0,-143.0`,
			"20261121-091400-demo-trial-1-requests.csv|62|" +
				"start_ms,method,url,protocol,stage,score,status,bytes,first_byte_ms,total_ms,note|" +
				"40,GET,https://www.shop.example/,h2,exact,1,200,30388,89.058,124.173,",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := b.Open("file://" + c.page); err != nil {
				t.Fatal(err)
			}
			got, err := reporttest.Eval[[]string](b, saved)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v, charts and files (-want +got):\n%s", err, diff)
			}
		})
	}
	if got := b.Problems(); len(got) > 0 {
		t.Errorf("the pages complain: %q", got)
	}
}
