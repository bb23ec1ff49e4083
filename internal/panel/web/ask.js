// The question before a run is deleted or cancelled.
import { $, call } from "./common.js";

const questions = {
  remove: {
    question: "Delete this run?", says: "Its recording, films and numbers go with it, and nothing brings them back.",
    no: "Keep", yes: "Delete", query: "?files=true", failed: "The run could not be deleted",
  },
  cancel: {
    question: "Cancel this run?", says: "One that waits is forgotten. One that goes on ends now, and keeps the trials that it has.",
    no: "Go on", yes: "Cancel run", query: "", failed: "The run could not be cancelled",
  },
};

// ask asks, does it, and calls done.
export function ask(what, run, name, done) {
  const q = questions[what];
  for (const id of ["question", "says", "no", "yes"]) $(id).textContent = q[id];
  $("which").textContent = `${name}, ${new Date(run.wall).toLocaleString()}${run.name ? `, ${run.name}` : ""} (${run.id})`;
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
