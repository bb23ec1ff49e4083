// The question before a run is deleted or cancelled.
import { $, call, when } from "./common.js";

const questions = {
  remove: {
    question: "Delete this run?", says: "Its recording, videos and results are deleted with it. This cannot be undone.",
    no: "Keep", yes: "Delete", query: "?files=true", failed: "The run could not be deleted",
  },
  cancel: {
    question: "Cancel this run?", says: "A waiting run is removed from the queue. A run in progress ends now and keeps its trials so far.",
    no: "Go on", yes: "Cancel run", query: "", failed: "The run could not be cancelled",
  },
};

// ask shows the question, carries out the request, and calls done.
export function ask(what, run, name, done) {
  const q = questions[what];
  for (const id of ["question", "says", "no", "yes"]) $(id).textContent = q[id];
  $("which").textContent = `${name}, ${when(run.wall)}${run.name ? `, ${run.name}` : ""} (${run.id})`;
  $("kept").textContent = "";
  $("sure").onsubmit = async e => {
    e.preventDefault();
    $("yes").disabled = true;
    try {
      await call(`/api/v1/runs/${encodeURIComponent(run.id)}${q.query}`, { method: "DELETE" });
      $("sure").close();
      done();
    } catch (problem) { $("kept").textContent = `${q.failed}: ${problem.message}.`; }
    $("yes").disabled = false;
  };
  $("sure").showModal();
}

$("no").addEventListener("click", () => $("sure").close());
