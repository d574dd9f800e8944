/**
 * What completes the arguments of a prompt or the variables of a template.
 */
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as AST from "effect/SchemaAST"
import type { Completer, Completers, Handled } from "../../Catalog.ts"
import * as Completion from "../../Completion.ts"
import type { HandlerError } from "../../HandlerError.ts"
import { toMcpError } from "../definitions/handlerError.ts"

type Given = Completion.Source<string, HandlerError, never>

/** The texts that a schema reads, where they are a few that it names. */
const literals = (ast: AST.AST): ReadonlyArray<string> | undefined => {
  if (AST.isLiteral(ast)) return typeof ast.literal === "string" ? [ast.literal] : undefined
  if (!AST.isUnion(ast)) return undefined
  const members = ast.types.filter((type) => !AST.isUndefined(type)).map(literals)
  return members.length > 0 && members.every((member) => member !== undefined) ? members.flat() : undefined
}

const completer = <R>(
  given: Completion.Source<string, HandlerError, R>,
  provide: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, McpRequest>
): Completer => {
  const run = (effect: Effect.Effect<ReadonlyArray<string>, HandlerError, R>): Handled<ReadonlyArray<string>> =>
    Effect.mapError(provide(effect), toMcpError)
  if (typeof given === "function") {
    return (value, others) => {
      const answer = given(value, others)
      return Effect.isEffect(answer) ? run(answer) : Effect.succeed(answer)
    }
  }
  return Effect.isEffect(given)
    ? (value) => Effect.map(run(given), Completion.matching(value))
    : (value) => Effect.succeed(Completion.match(value, given))
}

/** The completers by name, of those that have a source and those whose schema names what it reads; `undefined` without any. */
export const make = <R>(
  schemas: { readonly [name: string]: { readonly ast: AST.AST } },
  sources: { readonly [name: string]: unknown },
  provide: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, McpRequest>
): Completers | undefined => {
  const all = new Map<string, Completer>()
  for (const name of new Set([...Object.keys(schemas), ...Object.keys(sources)])) {
    const given = Object.hasOwn(sources, name) ? sources[name] as Given | undefined : undefined
    const source = given ?? (Object.hasOwn(schemas, name) ? literals(AST.toEncoded(schemas[name]!.ast)) : undefined)
    if (source !== undefined) all.set(name, completer<R>(source, provide))
  }
  return all.size === 0 ? undefined : all
}
