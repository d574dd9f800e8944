/** The completers of prompts and resource templates. */
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { Completer, Completers, Handled } from "../../Catalog.ts"
import * as Completion from "../../Completion.ts"
import type { HandlerError } from "../../HandlerError.ts"
import { settle } from "../base/attempt.ts"
import type { TextField } from "../schema/textFields.ts"
import { failWithMcpError } from "./handlerError.ts"

type AnySource = Completion.Source<string, HandlerError, never>

const makeCompleter = <R>(
  source: Completion.Source<string, HandlerError, R>,
  provide: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, McpRequest>
): Completer => {
  const run = (effect: Effect.Effect<ReadonlyArray<string>, HandlerError, R>): Handled<ReadonlyArray<string>> =>
    Effect.catch(provide(effect), failWithMcpError)
  if (typeof source === "function") {
    return (value, others) => run(settle(() => source(value, others)))
  }
  return Effect.isEffect(source)
    ? (value) => Effect.map(run(source), Completion.matching(value))
    : (value) => Effect.succeed(Completion.match(value, source))
}

/** Makes the completers of all names that have a source or a schema of literals. Returns `undefined` without any. */
export const makeCompleters = <R>(
  fields: ReadonlyArray<TextField>,
  sources: { readonly [name: string]: unknown },
  provide: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, McpRequest>
): Completers | undefined => {
  const all = new Map<string, Completer>()
  for (const { choices, name } of fields) if (choices !== undefined) all.set(name, makeCompleter<R>(choices, provide))
  for (const [name, source] of Object.entries(sources)) {
    if (source !== undefined) all.set(name, makeCompleter<R>(source as AnySource, provide))
  }
  return all.size === 0 ? undefined : all
}
