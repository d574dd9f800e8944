/**
 * Elicitation: requests for input from the user, with a form or with a URL to visit.
 *
 * An elicitation is an effect that the handler of a tool, prompt or resource yields. It works in all revisions that
 * have elicitation: forms since 2025-06-18, URLs since 2025-11-25. It fails with `InputError`, immediately if the
 * client has not declared the capability. A handler may let that error pass.
 *
 * **In the session-based revisions** (up to 2025-11-25) an elicitation is a request to the client, and the handler
 * waits for the response.
 *
 * **In the stateless revision** (2026-07-28) the server answers the request with its input requests. The client sends
 * the request again with the responses, and *the handler runs again from its start*. This time the elicitation returns
 * its response immediately. For handlers this means:
 *
 * - Code before an elicitation runs once per round. Wrap side effects that must not repeat in `Once.once`.
 * - Concurrent elicitations (`Effect.all(…, { concurrency: "unbounded" })`) go out together. Sequential ones, and those
 *   with bounded concurrency, need a round each. A request may have 16 rounds by default (`RequestState`).
 * - Once every fiber of the handler is waiting for a response or for time to pass, the handler is interrupted and its
 *   finalizers run. Then the client receives the input requests. Concurrent work is interrupted too and runs again;
 *   `Once.once` helps here as well.
 * - An elicitation is identified by its content and by how often the handler sent the same content before. If its text
 *   changes between runs (a clock, a random number, a rate), give it a `key`; otherwise it is sent in every round. Keep
 *   random values in a `once`.
 * - `Effect.timeout` and `Effect.race` around an elicitation wait for the user only in a session-based revision. The
 *   `timeout` option means the same in all revisions.
 * - Nothing can recover from the end of a round: `catchCause`, `retry` and `orElse` are skipped. Only inside of
 *   `Effect.uninterruptible` do such operators see an interruption; the region then continues to its end without the
 *   response.
 * - In a session-based revision a semaphore around an elicitation is held until the user answers. In the stateless
 *   revision each round releases it.
 * - A response comes from the client and does not prove who the user is. **Never ask for a password or a token with a
 *   form**: "Servers MUST use URL mode for interactions involving such sensitive information".
 *
 * @example
 * const book = Tool.layer(Tool.make("book"), () =>
 *   Effect.gen(function*() {
 *     const { people } = yield* Elicitation.accepted(Elicitation.form("How many are you?", { people: Schema.Int }))
 *     return `A table for ${people}`
 *   }))
 */
import type * as Wire from "@skein/protocol/Elicitation"
import * as Method from "@skein/protocol/Method"
import * as Nesting from "@skein/protocol/Nesting"
import { clip } from "@skein/protocol/Text"
import { type CallOptions, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type { StandardSchemaV1 } from "effect/StandardSchema"
import { Cancelled, Declined, type InputError, InvalidRequest, InvalidResponse } from "./InputError.ts"
import { schemaOf, type TypeOf } from "./internal/schema/inputSchema.ts"
import { toRequestedJsonSchema, toRequestedSchema } from "./internal/schema/requestedSchema.ts"
import * as standardSchema from "./internal/schema/standardSchema.ts"
import * as inputs from "./internal/input/inputRequests.ts"
import { failInput, requestInput, type TaskOptions } from "./internal/input/requestInput.ts"
import { sessionOf } from "./internal/base/session.ts"
import { maxProblemChars } from "./internal/schema/jsonSchema.ts"

export type { TaskOptions }

/** Options of an elicitation. */
export interface Options extends CallOptions {
  /**
   * In the stateless revision: identifies the elicitation when the handler runs again, instead of a digest of its
   * content. The client sees the key. A form with other fields is another elicitation, even with the same key.
   */
  readonly key?: string | undefined
  /**
   * In the stateless revision, with a `key`: accepts a response that the client sends under that key before the server
   * requested it, or without the `requestState`. False by default: the sealed state then proves that the user was asked
   * with this text.
   */
  readonly acceptUnsolicited?: boolean | undefined
  /**
   * How long to wait for the user: 10 minutes by default. After that the elicitation fails with `Timeout`. In the
   * stateless revision it fails when the client sends the request again, which it can do within the `lifetime` of
   * `RequestState`.
   */
  readonly timeout?: Duration.Input | undefined
  /**
   * In a task: the person or group that answers, in place of those who may see the task. It is one of the `addresses` of
   * `Tasks.layer`, such as the id of a principal; up to 512 characters, readable in the store also if tasks are encrypted.
   * Other callers are not shown the question and cannot answer it: an approval that the requester cannot forge. Elsewhere it fails with
   * `InvalidRequest`.
   */
  readonly to?: string | undefined
  /**
   * In a session of 2025-11-25: sends the elicitation as a task if the client supports it. In other revisions, and for
   * other clients, the option has no effect. No request is open while the user thinks; the server polls the client at
   * the interval that the client asks for. Without a `timeout`, the server waits for the `ttl` of the task. A task
   * whose answer came too late is cancelled.
   */
  readonly task?: TaskOptions | undefined
}

/** The response of the user: accepted (with content `A`), declined, or dismissed. */
export type Answer<A> =
  | { readonly action: "accept"; readonly content: A }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }

/** The encoded type of a form field. A date is a text with a format. */
type EncodedField = string | number | boolean | ReadonlyArray<string> | Date | URL | undefined

/**
 * The schema of one field: a text, a number, a boolean, a choice of texts, or a type that is decoded from one of these.
 */
export type Field = Schema.ConstraintCodec<unknown, EncodedField>

/** The fields of a form. */
export interface Fields {
  readonly [name: string]: Field
}

/** The schema of a form: its fields, or a struct of them. */
export type FormSchema = Fields | Schema.ConstraintCodec<unknown, { readonly [name: string]: EncodedField }>

/** The faults of the content of an answer. */
export interface InvalidContent {
  /** All faults, in lines. */
  readonly message: string
  /** The first fault of each field, by the name of the field. A fault of the whole form is in the message only. */
  readonly fields: { readonly [name: string]: string }
}

/** A compiled form, for repeated use. */
export interface Form<out A> {
  /** The form as it is sent, or one line that names the field that a form cannot have. */
  readonly requestedSchema: Result.Result<Wire.RequestedSchema, string>
  /** Decodes the content of an answer, or fails with its faults. */
  readonly decode: (content: unknown) => Effect.Effect<A, InvalidContent>
}

/** A form: its fields, a struct of them, a schema of another library (`z.object({ … })`), or a compiled form. */
export type AnyForm = FormSchema | StandardSchemaV1 | Form<unknown>

/** Every form that the types accept. `CheckedForm` names the mistake of a wrong one. */
export type GivenForm = AnyForm | {
  readonly [name: string]: Schema.ConstraintCodec<unknown, unknown> | StandardSchemaV1
}

/** Makes fields that a form cannot have a type error that names the mistake. */
export type CheckedForm<S> = S extends Form<unknown> ? unknown
  : S extends StandardSchemaV1 ? NestedField<StandardSchemaV1.InferInput<S>>
  : S extends AnyForm ? unknown
  : "The fields of a form are not all Effect Schemas of texts, numbers, booleans or choices. For another library, pass the schema of the whole object, such as z.object({ … })"

/** Names a field of a form that has fields of its own. A list of texts is a choice. */
type NestedField<A> = {
  [K in keyof A & string]-?: NonNullable<A[K]> extends infer Value
    ? Value extends ReadonlyArray<string> | string | number | boolean | bigint ? never
    : `The field \`${K}\` of a form must be a text, a number, a boolean or a choice: a form is flat`
    : never
}[keyof A & string] extends infer Problem ? [Problem] extends [never] ? unknown : Problem : never

/** The content of an accepted form. */
export type ContentOf<S extends GivenForm> = S extends Form<infer A> ? A : TypeOf<S>

class FormImpl<A> implements Form<A> {
  readonly requestedSchema: Form<A>["requestedSchema"]
  readonly decode: Form<A>["decode"]

  constructor(parts: Form<A>) {
    this.requestedSchema = parts.requestedSchema
    this.decode = parts.decode
  }
}

const issuesOf = /* @__PURE__ */ SchemaIssue.makeFormatterStandardSchemaV1()

const ofCodec = <A>(schema: Schema.ConstraintCodec<A, unknown>): Form<A> => {
  const read = Schema.decodeUnknownResult(Schema.toCodecJson(schema), { errors: "all" })
  const decode = Nesting.refusing<unknown, Result.Result<A, InvalidContent>>(
    (content) =>
      Result.mapError(read(content), ({ issue, message }) => ({
        message,
        fields: standardSchema.memberIssues(issuesOf(issue).issues)
      })),
    () => Result.fail({ message: `the value ${Nesting.problem}`, fields: {} })
  )
  return { requestedSchema: toRequestedSchema(schema), decode: (content) => Effect.fromResult(decode(content)) }
}

/** The form of the fields of a struct. Untyped programs may pass the fields of another library. */
const ofFields = (fields: unknown): Form<unknown> => {
  const schema = Result.try({ try: () => schemaOf(fields), catch: (error) => error as Error })
  if (Result.isSuccess(schema)) return ofCodec(schema.success)
  const message = `invalid form: ${schema.failure.message}`
  return { requestedSchema: Result.fail(message), decode: () => Effect.fail({ message, fields: {} }) }
}

const ofStandard = (schema: StandardSchemaV1): Form<unknown> => ({
  requestedSchema: Result.flatMap(
    Result.try({ try: () => standardSchema.jsonSchemaOf(schema, "input"), catch: String }),
    toRequestedJsonSchema
  ),
  decode: (content) =>
    Effect.flatMap(
      standardSchema.settle(standardSchema.findIssues(schema, content)),
      (read) =>
        Effect.fromResult(Result.mapError(read, (issues) => ({
          message: standardSchema.formatIssues(issues),
          fields: standardSchema.memberIssues(issues)
        })))
    )
})

/**
 * Compiles a form from a struct or from its fields. The client receives `title`, `description` and `default`, lengths,
 * bounds, and the formats of {@link Email}, {@link Uri}, {@link Day} and {@link DateTime}. All other checks of a
 * schema, a pattern for example, apply to the response only. A field with {@link withDefault} is filled in beforehand.
 *
 * The form may also be a schema of another library that has a JSON Schema, such as zod's: it checks the answer.
 *
 * A form cannot have a field that is an object, or a list of anything but a choice. Every elicitation with such a form
 * fails with `InvalidRequest` and the name of the field, and its `requestedSchema` is a failure.
 *
 * @example
 * const table = Elicitation.make({ people: Schema.Int, name: Schema.String.annotate({ title: "Your name" }) })
 * const book = Tool.layer(Tool.make("book"), () =>
 *   Effect.as(Elicitation.accepted(Elicitation.form("Which table?", table)), "Booked"))
 */
export const make = <const S extends Exclude<GivenForm, Form<unknown>>>(
  schema: S & CheckedForm<S>
): Form<ContentOf<S>> =>
  new FormImpl<unknown>(
    Schema.isSchema(schema)
      ? ofCodec(schema as unknown as Schema.ConstraintCodec<unknown, unknown>)
      : standardSchema.isStandardSchema(schema)
      ? ofStandard(schema)
      : ofFields(schema)
  ) as never

/** Compiles a form that may be compiled already. */
export const compile = <S extends GivenForm>(form: S): Form<ContentOf<S>> =>
  (form instanceof FormImpl ? form : make(form as unknown as FormSchema)) as never

/**
 * Returns a compiled form whose fields are filled in beforehand with these values: JSON of the encoded sides of its fields.
 * Clients fill them in as they do with {@link withDefault}. An absent field does not get the value.
 *
 * @example
 * const edit = (name: string) => Elicitation.form("Change your name?", Elicitation.filledIn(profile, { name }))
 */
export const filledIn = <A>(form: Form<A>, values: { readonly [name: string]: unknown }): Form<A> =>
  new FormImpl<A>({
    decode: form.decode,
    requestedSchema: Result.map(form.requestedSchema, ({ properties, ...rest }): Wire.RequestedSchema => ({
      ...rest,
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, field]) =>
          values[name] === undefined || !Object.hasOwn(values, name)
            ? [name, field]
            : [name, { ...field, default: values[name] } as Wire.PrimitiveSchemaDefinition]
        )
      )
    }))
  })

/**
 * Asks the user to fill in a form. The content of the answer is decoded by the schema. An accepted answer that does not
 * match fails with `InvalidResponse`; sent again, the form is a new elicitation.
 *
 * Fails with `InputError`: `MissingCapability`; `Unsupported` before 2025-06-18, and for a choice of several values
 * before 2025-11-25; `InvalidRequest` for a form that the specification does not allow; `Timeout`, `LimitExceeded`,
 * `Closed`, `ProtocolError`.
 *
 * @example
 * const answer = yield* Elicitation.form("Delete 3 files?", { sure: Schema.Boolean })
 * if (answer.action === "accept" && answer.content.sure) yield* remove
 */
export const form = <const S extends GivenForm>(
  message: string,
  schema: S & CheckedForm<S>,
  options?: Options
): Effect.Effect<Answer<ContentOf<S>>, InputError, McpRequest> => {
  const { decode, requestedSchema } = compile<GivenForm>(schema)
  return Effect.flatMap(McpRequest, ({ caller: { revision } }) => {
    const name = Method.Elicit.name
    if (Result.isFailure(requestedSchema)) {
      return failInput(name, revision, new InvalidRequest({ message: requestedSchema.failure }))
    }
    const params = { mode: "form", message, requestedSchema: requestedSchema.success } as const
    return Effect.flatMap(
      requestInput(inputs.elicitForm(params), options, true),
      ({ action, content }): Effect.Effect<Answer<unknown>, InputError> => {
        if (action !== "accept") return Effect.succeed({ action })
        return Effect.matchEffect(decode(content ?? {}), {
          onSuccess: (content) => Effect.succeed({ action, content }),
          onFailure: ({ message }) =>
            failInput(
              name,
              revision,
              new InvalidResponse({ message: `invalid form content: ${clip(message, maxProblemChars)}` })
            )
        })
      }
    )
  }) as never
}

/** Options of an elicitation in URL mode. */
export interface UrlOptions extends Options {
  /**
   * In 2025-11-25: the unique id that `notifications/elicitation/complete` refers to. A random UUID by default. Other
   * revisions do not have it.
   */
  readonly elicitationId?: string | undefined
}

/** A visit of a URL that the user has agreed to. */
export interface Visit {
  /**
   * Notifies the client that the visit is complete (2025-11-25, `notifications/elicitation/complete`), at any time
   * while the session is open. Nothing is sent in other revisions, which do not have the notification, and in a
   * long-running task, which outlives its session.
   */
  readonly complete: Effect.Effect<void>
}

/**
 * Asks the user to visit a URL, for interactions that the client must not see. `accept` means that the user agreed to
 * open the URL, **not that the interaction is complete**. Verify the identity of the visitor ("The MCP Server MUST
 * verify the identity of the user who opens the URL before accepting information"), put no secret into the URL, and use
 * `https`.
 *
 * In the stateless revision a URL that differs in each run needs a `key`, or a `once` that makes it.
 *
 * Fails with `InputError`: `Unsupported` before 2025-11-25, `InvalidRequest` for an invalid URL, and otherwise as
 * `form` does.
 *
 * @example
 * const connect = Tool.layer(Tool.make("connect"), () =>
 *   Effect.gen(function*() {
 *     const id = yield* once("login", Schema.String, startLogin)
 *     const login = Elicitation.url("Log in to the shop", `https://shop.example/login/${id}`)
 *     const visit = yield* Elicitation.accepted(login)
 *     yield* Effect.forkDetach(Effect.andThen(loginOf(id), visit.complete))
 *     return "Log in with the page that was opened"
 *   }))
 */
export const url = (
  message: string,
  url: string | URL,
  options: UrlOptions = {}
): Effect.Effect<Answer<Visit>, InputError, McpRequest> =>
  Effect.flatMap(McpRequest, (request) => {
    const { elicitationId = globalThis.crypto.randomUUID(), ...rest } = options
    return Effect.map(
      requestInput(inputs.elicitUrl({ mode: "url", message, url: String(url), elicitationId }), rest, true),
      ({ action }): Answer<Visit> =>
        action === "accept" ? { action, content: { complete: complete(request, elicitationId) } } : { action }
    )
  })

const complete = (request: RequestContext, elicitationId: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { caller } = request
    const { name } = Method.ElicitationComplete
    if (caller.revision !== "2025-11-25") return Effect.void
    // "MUST only send the notification to the client that initiated the elicitation request."
    if (!request.finished) return request.notify(name, { elicitationId })
    return sessionOf(caller)?.peer.notify(name, { elicitationId }) ?? Effect.void
  })

/**
 * Returns the accepted content. Fails with `InputError` `Declined` or `Cancelled` otherwise, which a tool may let pass.
 *
 * @example
 * const { people } = yield* Elicitation.accepted(Elicitation.form("How many?", { people: Schema.Int }))
 */
export const accepted = <A, E, R>(
  elicitation: Effect.Effect<Answer<A>, E, R>
): Effect.Effect<A, E | InputError, R | McpRequest> =>
  Effect.flatMap(elicitation, (answer) => {
    if (answer.action === "accept") return Effect.succeed(answer.content)
    const reason = answer.action === "decline"
      ? new Declined({ message: "The user declined" })
      : new Cancelled({ message: "The user dismissed the request without an answer" })
    return Effect.flatMap(
      McpRequest,
      ({ caller: { revision } }) => failInput(Method.Elicit.name, revision, reason)
    )
  })

// ---- fields

/** The values of a choice with their titles, in the order in which people see them. */
export interface Titles {
  readonly [value: string]: string
}

const options = <T extends Titles>(titles: T): Schema.Codec<keyof T & string> =>
  Schema.Union(Object.entries(titles).map(([value, title]) => Schema.Literal(value).annotate({ title }))) as never

/** Options of a choice. */
export interface ChoiceOptions {
  /**
   * Sends the titles as `enumNames` in all revisions, for clients that do not support the newer form. 2025-11-25 has
   * deprecated it ("legacy titled enum"). False by default.
   */
  readonly enumNames?: boolean | undefined
}

/**
 * Makes a field with a choice of one value. For a choice without titles use `Schema.Literals`. Clients of 2025-06-18
 * receive the older form with `enumNames`.
 *
 * @example
 * Elicitation.form("Where?", { where: Elicitation.choice({ in: "Inside", out: "In the garden" }) })
 */
export const choice = <const T extends Titles>(
  titles: T,
  { enumNames }: ChoiceOptions = {}
): Schema.Codec<keyof T & string> => enumNames === true ? options(titles).annotate({ enumNames }) : options(titles)

/**
 * Makes a field with a choice of several values, since 2025-11-25. For a choice without titles use
 * `Schema.Array(Schema.Literals(…))`.
 *
 * @example
 * const days = Elicitation.choices({ sat: "Saturday", sun: "Sunday" }).check(Schema.isMinLength(1))
 * const answer = yield* Elicitation.form("Which days?", { days })
 */
export const choices = <const T extends Titles>(titles: T): Schema.$Array<Schema.Codec<keyof T & string>> =>
  Schema.Array(options(titles))

/**
 * Gives a field a default, which clients fill in beforehand: for a boolean since 2025-06-18, for other fields since
 * 2025-11-25. An absent field has the default in every revision.
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

/** A text field with the format `email`. */
export const Email = /* @__PURE__ */ text("email", "an e-mail address", (text) => /^[^\s@]+@[^\s@]+$/.test(text))

/** A text field with the format `uri`. */
export const Uri = /* @__PURE__ */ text("uri", "a URI", (text) => URL.canParse(text))

/** A text field with the format `date`: `2026-07-28`. */
export const Day = /* @__PURE__ */ text(
  "date",
  "a date as 2026-07-28",
  (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))
)

/**
 * A text field with the format `date-time`: `2026-07-28T09:30:00Z`. `Schema.Date` has this format too, and decodes to a
 * `Date`.
 */
export const DateTime = /* @__PURE__ */ text(
  "date-time",
  "a date and time as 2026-07-28T09:30:00Z",
  (text) => /^\d{4}-\d\d-\d\dT/i.test(text) && !Number.isNaN(Date.parse(text))
)
