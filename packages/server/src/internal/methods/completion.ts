/** `completion/complete`. */
import type { CompleteRequestParams, CompleteResult } from "@skein/protocol/Completion"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Caller, McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as AST from "effect/SchemaAST"
import type { Catalog, Completer, Completers, Handled } from "../../Catalog.ts"
import * as Completion from "../../Completion.ts"
import type { HandlerError } from "../../HandlerError.ts"
import { toMcpError } from "../definitions/handlerError.ts"
import type { MethodTable } from "./methodTable.ts"
import { clip } from "../text.ts"

/** "Maximum 100 items per response". */
const most = 100

/** What a reference leads to: how it completes, and which names it has. */
interface Target {
  readonly complete?: Completers | undefined
  readonly names: () => ReadonlyArray<string>
}

const none: Target = { names: () => [] }

/** What one may not see does not exist, here as elsewhere. */
const find = (
  { prompts, resources, templates }: Catalog["Service"],
  ref: CompleteRequestParams["ref"],
  caller: Caller
): Target | undefined => {
  if (ref.type === "ref/prompt") {
    const prompt = prompts.seen(ref.name, caller)
    if (prompt === undefined) return undefined
    return { complete: prompt.complete, names: () => prompt.definition.arguments?.map(({ name }) => name) ?? [] }
  }
  // "`uri` is a URI or URI template" (2026-07-28): of a URI that is no template's text, the template that it matches.
  const template = templates.seen(ref.uri, caller)
    ?? (resources.seen(ref.uri, caller) === undefined
      ? templates.sorted.find(([, entry]) => entry.visible?.(caller) !== false && entry.match(ref.uri) !== undefined)
        ?.[1]
      : undefined)
  if (template === undefined) return resources.seen(ref.uri, caller) === undefined ? undefined : none
  return { complete: template.complete, names: () => template.names }
}

const result = (all: ReadonlyArray<string>): CompleteResult => ({
  completion: { values: all.slice(0, most), total: all.length, hasMore: all.length > most }
})

export const install = (methods: MethodTable): void => {
  methods.on(Method.Complete, ({ argument, context, ref }, { caller }) => {
    const target = find(methods.catalog, ref, caller)
    if (target === undefined) {
      const what = ref.type === "ref/prompt" ? `prompt: ${clip(ref.name)}` : `resource template: ${clip(ref.uri)}`
      return Effect.fail(McpError.invalidParams(`Unknown ${what}`))
    }
    const { name, value } = argument
    const complete = target.complete?.get(name)
    if (complete !== undefined) return Effect.map(complete(value, context?.arguments ?? {}), result)
    return target.names().includes(name)
      ? Effect.succeed(result([]))
      : Effect.fail(McpError.invalidParams(`Unknown argument: ${clip(name)}`))
  })
}

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
export const makeCompleters = <R>(
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
