/**
 * Error mapping: what a client sees of the failures and defects of handlers.
 *
 * Without it, a client receives the message of a failure, and a reference for a defect. The function `map` changes that
 * for calls of tools, reads of resources and prompts: it may write another message, choose a JSON-RPC error with a code,
 * or hide a failure. It does not see invalid arguments, results with `isError` that a handler makes itself,
 * cancellation, and failures of other middleware of `Middleware.layer`. Tasks on workers do not pass it.
 *
 * @example
 * const friendly = ErrorMapping.layer({
 *   map: ({ error, reference }) =>
 *     error instanceof SqlError
 *       ? ErrorMapping.message(`The database is not available. Try again in a minute (reference ${reference})`)
 *       : ErrorMapping.unchanged
 * })
 */
import type * as McpError from "@skein/protocol/McpError"
import type { McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import type { Catalog, Handled } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { VisibleError } from "./HandlerError.ts"
import { failureOfExit } from "./internal/handlers/handlerError.ts"
import { describeRequest, withoutRequest } from "./internal/middleware/failureAnswer.ts"
import * as Middleware from "./Middleware.ts"

/** A failure or a defect of a handler. */
export interface Failure {
  readonly kind: "tool" | "resource" | "prompt"
  /** The name of the tool or the prompt, or the URI of the resource. */
  readonly name: string
  /** The failure: an error with a message, an `McpError`, or a defect, which may be any value. */
  readonly error: unknown
  /** Whether the handler died. Its message may contain secrets. */
  readonly isDefect: boolean
  /** A reference for the message. If the answer is a `message` or an `McpError`, the cause is logged with it. */
  readonly reference: string
  readonly request: RequestContext
}

/** The error that the client sees: made by `unchanged`, `hidden` and `message`, or an `McpError`. */
export type Mapped = McpError.McpError | Unchanged | Hidden | Message

/** The failure stays as it is. */
export class Unchanged extends Data.TaggedClass("Unchanged")<{}> {}

/** The client sees a reference, and the cause is logged with it, as for a defect. */
export class Hidden extends Data.TaggedClass("Hidden")<{}> {}

/** The client sees this message: as a result with `isError` for a tool, else as `-32603`. */
export class Message extends Data.TaggedClass("Message")<{ readonly text: string }> {}

/** The failure stays as it is. */
export const unchanged: Mapped = /* @__PURE__ */ new Unchanged()

/** The client sees a reference, as for a defect, and nothing else. The cause is logged with the reference. */
export const hidden: Mapped = /* @__PURE__ */ new Hidden()

/**
 * The client, or its model, sees this message instead. Write it as an instruction that a model can act on.
 *
 * @example
 * const busy = ErrorMapping.message("The warehouse is busy. Ask for one order at a time")
 */
export const message = (text: string): Mapped => new Message({ text })

/** The mapping, and where it applies. */
export interface Options {
  /** Decides what the client sees. An exception in it is a defect in the place of the failure. */
  readonly map: (failure: Failure) => Mapped
  /** The tools whose failures are mapped. All by default. */
  readonly tools?: Middleware.Tools | undefined
  /** Whether failures of resources and prompts are mapped: `true` by default. */
  readonly others?: boolean | undefined
}

/**
 * Maps the failures of handlers. List it before `Retry`, so that it sees the last failure only. Of several, the last one
 * in the list is asked first, and those before it see its answer.
 *
 * @example
 * const coded = ErrorMapping.layer({
 *   map: ({ error }) => error instanceof Forbidden ? McpError.other(-31_003, "Forbidden") : ErrorMapping.unchanged
 * })
 */
export const layer = (options: Options): Layer.Layer<never, DefinitionError, Catalog> => {
  const calls = Middleware.callTool(
    ({ name, request }, next) => mapped(options, "tool", name, request, next()),
    { tools: options.tools }
  )
  if (options.others === false) return calls
  return Layer.mergeAll(
    calls,
    Middleware.readResource(({ request, uri }, next) => mapped(options, "resource", uri, request, next())),
    Middleware.getPrompt(({ name, request }, next) => mapped(options, "prompt", name, request, next()))
  )
}

const mapped = <A extends object>(
  { map }: Options,
  kind: Failure["kind"],
  name: string,
  request: RequestContext,
  handled: Handled<A>
): Effect.Effect<A, McpError.McpError | VisibleError, McpRequest> =>
  Effect.flatMap(Effect.exit(handled), (exit) => {
    const failure = failureOfExit(exit)
    if (failure === undefined) return exit
    const { error, isDefect } = failure
    const reference = globalThis.crypto.randomUUID()
    const answer = map({ kind, name, error, isDefect, reference, request })
    if (answer._tag === "Unchanged") return exit
    if (answer._tag === "Hidden") return Effect.die(error)
    const told = answer._tag === "Message" ? new VisibleError(answer.text) : answer
    const cause = Exit.isFailure(exit) ? exit.cause : Cause.fail(error)
    return Effect.andThen(
      withoutRequest(Effect.logError(`${describeRequest(request)} failed, reference ${reference}`, cause)),
      Effect.fail(told)
    )
  })
