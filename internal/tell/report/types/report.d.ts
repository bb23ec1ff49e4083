import type { components } from "./api";

// What is looked for here are wrong fields of what a report holds for its scripts, and wrong arguments. Which element
// an id or an event stands for, only the page knows.
declare global {
  /** What a page of reports holds for its script. */
  type Held<Name extends keyof components["schemas"]> = components["schemas"][Name];
  interface EventTarget { [property: string]: any }
  interface Event { [property: string]: any }
  const uPlot: any;

  /** A trial on the page of timelines, and what is drawn of it. */
  interface Shown { arm: string; n: number; word: string; data: Held<"TimelineData">; rows: Row[]; [drawn: string]: any }
  interface Row { c: Shown; track: Held<"TimelineTrack">; match: Uint8Array | null; [drawn: string]: any }
}
