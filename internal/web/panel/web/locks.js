// How two films are kept together: by the time since the start, or by visual progress. A place is an instant in ms, or a
// progress in %. Pure functions over the lists of frames that the server sends; the progress is SpeedIndex's own.
import { frameAt, progressOf } from "./curve.js";

// A film parts from another where their progress has differed by more than this many points for so many ms.
export const apart = 5, long = 100;

// most is, for each frame from the start on, the most progress until then: what has been reached stays reached.
export function most(list) {
  let best = 0;
  return list.progress.map(p => best = Math.max(best, p));
}

// mostAt is the progress that has been reached at an instant.
export const mostAt = (list, reached, ms) => reached.length ? reached[Math.min(Math.max(frameAt(list, ms) - list.start_frame, 0), reached.length - 1)] : 0;

// first is the first frame by which a progress has been reached, or null.
export function first(list, reached, progress) {
  const k = reached.findIndex(p => p >= progress);
  return k < 0 ? null : list.start_frame + k;
}

const sorted = values => [...new Set(values)].sort((a, b) => a - b);

// locks returns both ways to lock two films. Each has the places at which one of them changes its frame, and at(place), the frames
// of both; progress has no places where a film has no progress.
export function locks(films) {
  const reached = films.map(most), last = list => list.time_ms.length - 1;
  const instants = sorted(films.flatMap(list => list.time_ms.slice(Math.min(list.start_frame, last(list)))));
  return {
    time: { places: instants, at: ms => films.map(list => Math.max(frameAt(list, ms), Math.min(list.start_frame, last(list)))), reached },
    progress: { places: reached.every(r => r.length) ? sorted(reached.flat()) : [], at: p => films.map((list, i) => Math.min(first(list, reached[i], p) ?? last(list), last(list))), reached },
  };
}

// parted is the instant from which two films show different progress, or null where they never do.
export function parted(films) {
  const { places, reached } = locks(films).time;
  if (reached.some(r => !r.length)) return null;
  let since = null;
  for (const ms of places) {
    const [a, b] = films.map((list, i) => mostAt(list, reached[i], ms));
    if (Math.abs(a - b) <= apart) since = null;
    else if (since === null) since = ms;
    else if (ms - since >= long) return since;
  }
  return null;
}

// times says when each level of progress was reached, in ms, or null.
export function times(films) {
  const { places, reached } = locks(films).progress;
  return places.map(level => ({ level, ms: films.map((list, i) => { const frame = first(list, reached[i], level); return frame === null ? null : list.time_ms[Math.min(frame, list.time_ms.length - 1)]; }) }));
}

export const says = (list, i) => progressOf(list, i) === undefined ? "" : `visual progress ${progressOf(list, i)} %`;
