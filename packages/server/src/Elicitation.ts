/**
 * Asking the user, by a form or by an address to visit.
 *
 * A question is an effect that a handler of a tool, a prompt or a resource yields, in all revisions that have it: forms since
 * 2025-06-18, addresses since 2025-11-25. It fails with `InputError`, at once where the client has not declared that it can be asked;
 * a handler may let that pass.
 *
 * @example
 * const book = Tool.layer(Tool.make("book"), () =>
 *   Effect.gen(function*() {
 *     const { people } = yield* Elicitation.accepted(Elicitation.form("How many are you?", { people: Schema.Int }))
 *     return `A table for ${people}`
 *   }))
 *
 * **What one has to know.** In the session era (up to 2025-11-25) a question is a request to the client, and the handler waits. In the
 * request era (2026-07-28) the request is answered with the questions, and comes again with the answers: *the handler is run again
 * from its start*, and this time the question has its answer at once. So for a handler that asks:
 *
 * - What stands before a question runs once per round. `Once.once` is for side effects that must not.
 * - Questions that are asked in parallel (`Effect.all(…, { concurrency: "unbounded" })`) go out together. With bounded concurrency,
 *   or in sequence, each turn costs a round; at most 16 rounds by default (`RequestState`).
 * - When a handler waits for answers and nothing is left to run but what takes time, it is interrupted, and its finalizers run,
 *   before the client sees the questions. Siblings that are in flight are interrupted too, and run again: again `once` helps.
 * - A question is known by what it asks, and how often it was asked before. When its text varies with time (a clock, a random
 *   number, a rate), give it a `key`, or it is asked for ever; keep what is random in a `once`.
 * - `Effect.timeout` and `Effect.race` around a question wait for the user in the session era only. The `timeout` of the question
 *   itself means the same in both eras.
 * - Nothing can recover from the end of a round, nor should it: `catchCause`, `retry` and `orElse` are skipped. Only within an
 *   `Effect.uninterruptible` region such an operator sees an interruption, and goes on without the answer to the region's end.
 * - A semaphore or a lock around a question is held while the user thinks in the session era, and given back with the end of each
 *   round in the request era.
 * - An answer comes from the client and is no proof of who the user is. **Never ask for a password, a token or the like by a form**:
 *   "Servers MUST use URL mode for interactions involving such sensitive information".
 */
import * as Capabilities from "@skein/protocol/Capabilities"
import type * as Wire from "@skein/protocol/Elicitation"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import type { Revision } from "@skein/protocol/Revision"
import { type CallOptions, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { InputError } from "./InputError.ts"
import { clip, maxProblem, quoted } from "./internal/text.ts"
import { toRequestedSchema } from "./internal/definitions/requestedSchema.ts"
import { failInput, requestInput, type TaskOptions } from "./internal/input/requestInput.ts"
import { sessionOf } from "./internal/dispatch/session.ts"

export type { TaskOptions }

/** How the user is asked. */
export interface Options extends CallOptions {
  /**
   * In the request era: what the question is known by when the handler runs again, instead of a digest of what is asked. The client
   * sees it. A form that has changed is another question all the same.
   */
  readonly key?: string | undefined
  /**
   * In the request era, with a `key`: takes an answer that the client sends under that key though it was not asked yet, or without
   * the `requestState` that came with the question. False by default: what is sealed then proves that the question went out with
   * the text that it has.
   */
  readonly acceptUnsolicited?: boolean | undefined
  /**
   * How long to wait for the user, 10 minutes by default. Then the question fails with `TimedOut`; in the request era when the
   * client comes back, and at most for the `timeToLive` of `RequestState`, after which it need not come back at all.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * In a session of 2025-11-25: asks for the answer as a task, where the client takes such questions, and as always where it does not
   * and in the other revisions. No request is open while the user thinks; the client is asked again and again, as often as it wishes,
   * whether there is an answer. With a `ttl` that is how long to wait, where `timeout` does not say. What is asked for in vain is
   * cancelled.
   */
  readonly task?: TaskOptions | undefined
}

/** What the user did: agreed (and entered `A`), said no, or dismissed the question. */
export type Answer<A> =
  | { readonly action: "accept"; readonly content: A }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }

/** What a field of a form is sent as. A date is a text with a format. */
type Sent = string | number | boolean | ReadonlyArray<string> | Date | URL | undefined

/** A schema of one field: a text, a number, a yes or no, a choice of texts, or something that is read from one of these. */
export type Field = Schema.ConstraintCodec<unknown, Sent>

/** The fields of a form. */
export interface Fields {
  readonly [name: string]: Field
}

/** What describes a form: its fields, or a struct of them. */
export type Shape = Fields | Schema.ConstraintCodec<unknown, { readonly [name: string]: Sent }>

/** What a form asks for. */
export type TypeOf<S extends Shape> = S extends Schema.ConstraintCodec<infer A, unknown> ? A
  : S extends Schema.Struct.Fields ? Schema.Struct.Type<S>
  : never

/** A form that was made once, to be asked often. */
export interface Form<out A> {
  /** The form as it is sent, or one line that names the field that no form can have. */
  readonly requestedSchema: Result.Result<Wire.RequestedSchema, string>
  readonly decode: (content: unknown) => Result.Result<A, { readonly message: string }>
}

class FormImpl<A> implements Form<A> {
  readonly requestedSchema: Form<A>["requestedSchema"]
  readonly decode: Form<A>["decode"]

  constructor(schema: Schema.ConstraintCodec<A, unknown>) {
    this.requestedSchema = toRequestedSchema(schema)
    this.decode = Schema.decodeUnknownResult(Schema.toCodecJson(schema), { errors: "all" })
  }
}

/**
 * Makes a form of a struct, or of its fields. `title`, `description` and `default` are told to the user, as are lengths, bounds and
 * the formats of {@link Email} and its kin; whatever else a schema checks (a pattern, say) is checked on the answer. A field with a
 * {@link withDefault} is filled in already.
 *
 * A field that is none (an object, a list of anything but a choice) makes every question with the form fail, with
 * `InvalidQuestion` and its name; `requestedSchema` tells it before.
 */
export const make = <const S extends Shape>(shape: S): Form<TypeOf<S>> =>
  new FormImpl(
    (Schema.isSchema(shape) ? shape : Schema.Struct(shape as unknown as Schema.Struct.Fields)) as never
  )

/** What a client must have said to be asked in a mode. Before 2025-11-25 there were forms only, and no word for them. */
const missing = (mode: "form" | "url") => (capabilities: JsonObject, revision: Revision): JsonObject | undefined => {
  const { elicitation } = capabilities as Capabilities.ClientCapabilities
  if (revision < "2025-11-25") return elicitation === undefined ? { elicitation: {} } : undefined
  return Capabilities.elicits(capabilities as Capabilities.ClientCapabilities, mode)
    ? undefined
    : { elicitation: { [mode]: {} } }
}

/**
 * Asks the user to fill in a form. The answer's content is what the schema reads. An answer that is accepted and does not fit fails
 * with `InvalidAnswer`; asked again, it is a new question.
 *
 * Fails with `Unsupported` before 2025-06-18, and for a choice of several values before 2025-11-25.
 */
export const form = <const S extends Shape | Form<unknown>>(
  message: string,
  shape: S,
  options?: Options
): Effect.Effect<
  Answer<S extends Form<infer A> ? A : S extends Shape ? TypeOf<S> : never>,
  InputError,
  McpRequest
> => asking(message, shape instanceof FormImpl ? shape : make(shape as Shape), options) as never

const asking = <A>(
  message: string,
  { decode, requestedSchema }: Form<A>,
  options: Options | undefined
): Effect.Effect<Answer<A>, InputError, McpRequest> =>
  Effect.flatMap(McpRequest, ({ caller: { revision } }) => {
    const name = Method.Elicit.name
    if (Result.isFailure(requestedSchema)) return failInput(name, revision, "InvalidQuestion", requestedSchema.failure)
    const params = { mode: "form", message, requestedSchema: requestedSchema.success } as const
    const question = { method: Method.Elicit, params, missing: missing("form") }
    return Effect.flatMap(
      requestInput(question, options, true),
      ({ action, content }): Effect.Effect<Answer<A>, InputError> => {
        if (action !== "accept") return Effect.succeed({ action })
        const read = decode(content ?? {})
        return Result.isSuccess(read)
          ? Effect.succeed({ action, content: read.success })
          : failInput(
            name,
            revision,
            "InvalidAnswer",
            `The form was not filled in: ${clip(read.failure.message, maxProblem)}`
          )
      }
    )
  })

/** How the user is sent to an address. */
export interface UrlOptions extends Options {
  /**
   * In 2025-11-25: what ties the notice of completion to this question. Unique; a random one by default. Other revisions do not
   * have it.
   */
  readonly elicitationId?: string | undefined
}

/** A visit that the user has agreed to. */
export interface Visit {
  /**
   * Tells the client that the visit has come to its end (2025-11-25, `notifications/elicitation/complete`), at any time while
   * the session lives. Other revisions have no way to say it, and nothing is sent; nor is it in a long-running task, which outlives
   * the session in which it was asked.
   */
  readonly complete: Effect.Effect<void>
}

/**
 * Asks the user to visit an address, where things are done that the client must not see: `accept` says that the user agreed to go
 * there, **not that anything was done there**. Verify who it is that comes ("The MCP Server MUST verify the identity of the
 * user who opens the URL before accepting information"), put no secret into the address, and use `https`.
 *
 * In the request era an address that is made anew each time needs a `key`, or a `once` that makes it.
 *
 * Fails with `Unsupported` before 2025-11-25.
 */
export const url = (
  message: string,
  address: string | URL,
  options: UrlOptions = {}
): Effect.Effect<Answer<Visit>, InputError, McpRequest> =>
  Effect.flatMap(McpRequest, (exchange) => {
    const { elicitationId = globalThis.crypto.randomUUID(), ...rest } = options
    const params = { mode: "url", message, url: String(address), elicitationId } as const
    // "The `url` parameter MUST contain a valid URL."
    const problem = URL.canParse(params.url) ? undefined : `This is no URL: ${quoted(params.url)}`
    return Effect.map(
      requestInput({ method: Method.Elicit, params, missing: missing("url"), problem }, rest, true),
      ({ action }): Answer<Visit> =>
        action === "accept" ? { action, content: { complete: complete(exchange, elicitationId) } } : { action }
    )
  })

const complete = (exchange: RequestContext, elicitationId: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { caller } = exchange
    const { name } = Method.ElicitationComplete
    if (caller.revision !== "2025-11-25") return Effect.void
    // "MUST only send the notification to the client that initiated the elicitation request."
    if (!exchange.finished) return exchange.notify(name, { elicitationId })
    return sessionOf(caller)?.peer.notify(name, { elicitationId }) ?? Effect.void
  })

/** What was accepted. Fails with `InputError` `Declined` or `Cancelled` otherwise, which a tool may let pass. */
export const accepted = <A, E, R>(
  question: Effect.Effect<Answer<A>, E, R>
): Effect.Effect<A, E | InputError, R | McpRequest> =>
  Effect.flatMap(question, (answer) => {
    if (answer.action === "accept") return Effect.succeed(answer.content)
    const [reason, message] = answer.action === "decline"
      ? ["Declined", "The user said no"] as const
      : ["Cancelled", "The user dismissed the question"] as const
    return Effect.flatMap(
      McpRequest,
      ({ caller: { revision } }) => failInput(Method.Elicit.name, revision, reason, message)
    )
  })

// ---- fields

/** Values with the words that people see for them, in this order. */
export interface Titles {
  readonly [value: string]: string
}

const options = <T extends Titles>(titles: T): Schema.Codec<keyof T & string> =>
  Schema.Union(Object.entries(titles).map(([value, title]) => Schema.Literal(value).annotate({ title }))) as never

/** How a choice is written. */
export interface ChoiceOptions {
  /**
   * Writes the titles as `enumNames`, which 2025-11-25 has deprecated ("legacy titled enum"), in all revisions: for clients that
   * have not learned the newer way. False by default.
   */
  readonly enumNames?: boolean | undefined
}

/** A choice of one value. Without titles: `Schema.Literals`. 2025-06-18 has an older way to write it, and gets that. */
export const choice = <const T extends Titles>(
  titles: T,
  { enumNames }: ChoiceOptions = {}
): Schema.Codec<keyof T & string> => enumNames === true ? options(titles).annotate({ enumNames }) : options(titles)

/**
 * A choice of several values, since 2025-11-25. Without titles: `Schema.Array(Schema.Literals(…))`. How many there have to be is
 * said by checks: `choices({ … }).check(Schema.isMinLength(1))`.
 */
export const choices = <const T extends Titles>(titles: T): Schema.$Array<Schema.Codec<keyof T & string>> =>
  Schema.Array(options(titles))

/**
 * A field that is filled in already: a yes or no since 2025-06-18, any other since 2025-11-25. Whoever leaves it out means the
 * default, in every revision.
 *
 * @example
 * const table = Elicitation.make({
 *   people: Schema.Int.pipe(Elicitation.withDefault(2)),
 *   where: Elicitation.choice({ in: "Inside", out: "In the garden" }).pipe(Elicitation.withDefault("in"))
 * })
 */
export const withDefault = <S extends Field>(value: S["Type"]) => (field: S): Schema.withDecodingDefaultTypeKey<S> =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(field)

const text = (format: string, expected: string, accepts: (text: string) => boolean) =>
  Schema.String.annotate({ format }).check(Schema.makeFilter(accepts, { expected }))

/** A text with the format `email`. */
export const Email = /* @__PURE__ */ text("email", "an e-mail address", (text) => /^[^\s@]+@[^\s@]+$/.test(text))

/** A text with the format `uri`. */
export const Uri = /* @__PURE__ */ text("uri", "a URI", (text) => URL.canParse(text))

/** A text with the format `date`: `2026-07-28`. */
export const Day = /* @__PURE__ */ text(
  "date",
  "a date as 2026-07-28",
  (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
)

/** A text with the format `date-time`: `2026-07-28T09:30:00Z`. `Schema.Date` has it too, and is read as a `Date`. */
export const DateTime = /* @__PURE__ */ text(
  "date-time",
  "a date and time as 2026-07-28T09:30:00Z",
  (text) => /^\d{4}-\d\d-\d\dT/i.test(text) && !Number.isNaN(Date.parse(text))
)
