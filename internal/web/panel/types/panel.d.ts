import type { components, paths } from "./api";

/** A schema of the OpenAPI document. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** The addresses that a path of the document has: /runs/{id} is /runs/${string}. */
type Address<Path> = Path extends `${infer Before}{${string}}${infer After}` ? `${Before}${string}${Address<After>}` : Path;
type WithoutQuery<Text> = Text extends `${infer Path}?${string}` ? Path : Text;
type Same<A, B> = [A, B] extends [B, A] ? true : false;
type PathOf<Text> = { [Path in keyof paths]: Same<WithoutQuery<Text>, Address<Path>> extends true ? Path : never }[keyof paths];

type Success<Operation> = Operation extends { responses: infer All }
  ? { [Status in keyof All & (200 | 201 | 202)]: All[Status] extends { content: { "application/json": infer Body } } ? Body : null }[keyof All & (200 | 201 | 202)]
  : never;

/** What an operation answers: any where the address is only known when the page runs, unknown where no operation has it. */
export type Answer<Text extends string, Method extends string> = [PathOf<Text>] extends [never]
  ? Text extends `/api/v1/${string}` ? unknown : any
  : Lowercase<Method> extends keyof paths[PathOf<Text>] ? Success<paths[PathOf<Text>][Lowercase<Method>]> : string extends Method ? any : unknown;

// What is looked for here are wrong fields of the box's answers and wrong arguments. Which element an id or an event
// stands for, only the page knows.
declare global {
  interface EventTarget { [property: string]: any }
  interface HTMLFormControlsCollection { [name: string]: any }
}
