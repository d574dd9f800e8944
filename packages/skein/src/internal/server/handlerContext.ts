/**
 * The last argument of a handler: its request, and functions that ask the client, report progress and log.
 */
import type { Principal } from "../base/http.ts"
import type {
  CreateMessageRequestParams,
  CreateMessageResult,
  Implementation,
  Progress,
  Root,
  SamplingMessage,
  SamplingMessageContentBlock
} from "../base/messages.ts"
import type { Duration, OutputOf, StandardSchema } from "../base/types.ts"
import type { McpRequest } from "./request.ts"
import type { AnySchema, ReadBy } from "./schema.ts"
import type { PerSession, State, StateOperations } from "./state.ts"

/**
 * The last argument of a handler. Its functions may be taken out: `async ({ city }, { elicit, signal }) => …`.
 *
 * - **When the handler ends early**, because the client cancels the request, a timeout passes or the server stops, `signal`
 *   aborts. Pending promises of the context reject with its reason. The result of the handler is ignored then.
 * - **Input requests** (`elicit`, `elicitUrl`, `sample`, `roots`) work in all revisions. In 2026-07-28 the handler runs again
 *   from its start with the answers: wrap effects that must not repeat in `once`. Concurrent input requests go out together.
 *   They reject with `InputError`.
 * - **Errors.** The client, or its model, receives the message of a `VisibleError`, an `InputError` and an `McpError`. Any
 *   other error may contain secrets: the client receives a reference, and the error is logged with that reference.
 */
export interface HandlerContext {
  /** Aborts when the handler ends early. Pass it to `fetch` and the like. */
  readonly signal: AbortSignal
  /** The request: its method and params, the caller and its capabilities. */
  readonly request: McpRequest
  /** The authenticated caller, if the transport or the application around the server has found one. */
  readonly principal: Principal | undefined
  /** The name and version that the client claims. Not to be trusted. */
  readonly client: Partial<Implementation> | undefined
  /**
   * A header of the HTTP request, by its name in any case; `undefined` over stdio and in a task. In a request with a
   * principal, headers with credentials are `undefined`: see `readableCredentials` of `HttpOptions`.
   */
  readonly header: (name: string) => string | undefined
  /**
   * Asks the user to fill in a form, whose fields are texts, numbers, booleans and choices. Never ask for a password or a
   * token: use `elicitUrl`.
   *
   * @example
   * const answer = await elicit("How many are you?", z.object({ people: z.int().min(1) }))
   * if (answer.action === "accept") book(answer.content.people)
   */
  readonly elicit: <S extends AnySchema>(
    message: string,
    form: S & CheckedForm<S>,
    options?: ElicitOptions
  ) => Promise<ElicitAnswer<ReadBy<S>>>
  /**
   * Asks the user to visit a URL, for interactions that the client must not see (since 2025-11-25). `accept` means that the
   * user agreed to open it, and not that the interaction is complete. Verify the identity of the visitor.
   */
  readonly elicitUrl: (
    message: string,
    url: string | URL,
    options?: ElicitUrlOptions
  ) => Promise<{ readonly action: "accept" | "decline" | "cancel" }>
  /**
   * Requests a message from the client's model. The specification deprecates it since 2026-07-28.
   *
   * @example
   * const answer = await sample({ messages: `Summarize: ${text}`, maxTokens: 500 })
   */
  readonly sample: (request: SampleRequest, options?: SampleOptions) => Promise<SampleAnswer>
  /** Requests the directories and files that the client works in. They are guidance, and not access control. */
  readonly roots: (options?: InputOptions) => Promise<ReadonlyArray<Root>>
  /**
   * Reports progress, if the client requested reports. `progress` must grow with every report. Resolves when the report is
   * sent.
   *
   * @example
   * await progress({ progress: done, total: files.length, message: `read ${file}` })
   */
  readonly progress: {
    (progress: Progress): Promise<void>
    (progress: "Pass one object: progress({ progress: 1, total: 2 })", total: unknown): Promise<void>
  }
  /**
   * Closes the HTTP connection on which the client waits for a long request. The client reconnects after `retry` (1 second by
   * default), and the handler continues. It does nothing on stdio and in other revisions than 2025-11-25.
   */
  readonly disconnect: (retry?: Duration) => Promise<void>
  /** Logs to the loggers of the server, and to the client if it wants logs. */
  readonly log: Log
  /**
   * Runs a function once per request, however often the handler runs. The key must be unique in the handler. The result is
   * stored as JSON, and you receive what JSON makes of it in each round: a `Date` is its text. At most one minute by default
   * (`timeout`): then it rejects with `InputError`.
   *
   * @example
   * const id = await once("reserve", () => reserve(items))
   */
  readonly once: <A>(
    key: string,
    run: (() => A | Promise<A>) & CheckedJson<A>,
    options?: { readonly timeout?: Duration | undefined }
  ) => Promise<JsonForm<NoInfer<A>>>
  /**
   * Reads and changes a state of the user or the session. The promises reject with `StateError`.
   *
   * @example
   * const items = await state(cart).update((items) => [...items, item])
   */
  readonly state: <A>(state: State<A>) => StateOperations<A>
  /**
   * Returns a value that lives as long as the session, and acquires it if the session has none. It is not released before the
   * handler ends. Rejects with `StateError` where there is no session, and with the error of the acquisition.
   *
   * @example
   * const page = await (await use(browser)).newPage()
   */
  readonly use: <A>(value: PerSession<A>) => Promise<A>
}

/** Writes log messages. Further values become part of the message. */
export interface Log {
  readonly debug: (...message: ReadonlyArray<unknown>) => void
  readonly info: (...message: ReadonlyArray<unknown>) => void
  readonly warn: (...message: ReadonlyArray<unknown>) => void
  readonly error: (...message: ReadonlyArray<unknown>) => void
}

/** A handler that returns a value or a promise. */
export type Handler<Input, A> = (input: Input, context: HandlerContext) => A | Promise<A>

/** Options of an input request. */
export interface InputOptions {
  /** How long to wait for the answer: 10 minutes by default. Then the promise rejects with `InputError` `Timeout`. */
  readonly timeout?: Duration | undefined
  /**
   * In 2026-07-28: identifies the input request when the handler runs again, instead of a digest of its content. Give one to
   * an input request whose text changes between runs. The client sees it.
   */
  readonly key?: string | undefined
}

/** Options of `elicit`. */
export interface ElicitOptions extends InputOptions {
  /**
   * In a task: the person or group that answers, in place of those who may see the task: one of the `addresses` of `tasks`, such
   * as the id of a principal. Others are not shown the question and cannot answer it. Elsewhere it is `InvalidRequest`.
   */
  readonly to?: string | undefined
  /**
   * In 2026-07-28, with a `key`: accepts a response that the client sends under that key before the server requested it.
   * False by default.
   */
  readonly acceptUnsolicited?: boolean | undefined
  /**
   * In a session of 2025-11-25: sends the input request as a task if the client supports it, which should retain the task for
   * `ttl` (the `timeout` by default).
   */
  readonly task?: { readonly ttl?: Duration | undefined } | undefined
}

/** Options of `elicitUrl`. */
export interface ElicitUrlOptions extends ElicitOptions {
  /** In 2025-11-25: the unique id of the elicitation. A random UUID by default. */
  readonly elicitationId?: string | undefined
}

/** The answer of the user, with the decoded content of an accepted form. */
export type ElicitAnswer<A> =
  | { readonly action: "accept"; readonly content: A }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }

/** Makes a form that is not a schema, and fields that a form cannot have, a type error that names the mistake. */
export type CheckedForm<S> = S extends StandardSchema ? NestedField<OutputOf<S>>
  : "Pass the schema of the whole form, such as z.object({ … }), and not its fields"

/** Names a field of a form that has fields of its own. A list of texts is a choice. */
type NestedField<A> = {
  [K in keyof A & string]-?: NonNullable<A[K]> extends infer Value
    ? Value extends ReadonlyArray<string> | string | number | boolean | bigint ? never
    : `The field \`${K}\` of a form must be a text, a number, a boolean or a choice: a form is flat`
    : never
}[keyof A & string] extends infer Problem ? [Problem] extends [never] ? unknown : Problem : never

/** A request to the client's model. */
export interface SampleRequest extends Omit<CreateMessageRequestParams, "messages" | "_meta"> {
  /** The conversation so far. A text is one message of the user. */
  readonly messages: string | ReadonlyArray<SamplingMessage>
}

/** Options of `sample`. */
export interface SampleOptions extends InputOptions {
  /** As of `elicit`. */
  readonly task?: { readonly ttl?: Duration | undefined } | undefined
}

/** The answer of the model. Its content is always a list, even if the client sent a single block. */
export interface SampleAnswer extends Omit<CreateMessageResult, "content"> {
  readonly content: ReadonlyArray<SamplingMessageContentBlock>
}

/** The content of a message to a model: a text, a block, or several blocks (since 2025-11-25). */
export type SampleInput = string | SamplingMessageContentBlock | ReadonlyArray<SamplingMessageContentBlock>

/** The values that JSON cannot hold. */
type WithoutForm =
  | bigint
  | symbol
  | RegExp
  | Promise<unknown>
  // A Map or a Set.
  | { readonly size: number; readonly has: AnyFunction; readonly forEach: AnyFunction }
  | ArrayBuffer
type AnyFunction = (...args: never) => unknown
type Primitive = string | number | boolean | null | undefined | void

/** The type of a value after it was written as JSON and read again. A value without a form is `never`. */
export type JsonForm<A> = unknown extends A ? A
  : A extends Primitive ? A
  : A extends { toJSON: (...args: never) => infer Written } ? JsonForm<Written>
  : A extends WithoutForm | AnyFunction ? never
  : A extends ReadonlyArray<unknown> ? { [Key in keyof A]: JsonForm<A[Key]> }
  : { [Key in keyof A as FormKey<A, Key>]: JsonForm<A[Key]> }

/** The names of the members that JSON has: those with a text as name, and without methods. */
type FormKey<A, Key extends keyof A> = Key extends symbol ? never
  : [A[Key]] extends [never] ? Key
  : [A[Key]] extends [AnyFunction] ? never
  : Key

type Held<A> = unknown extends A ? A
  : A extends Primitive ? A
  : A extends { toJSON: (...args: never) => unknown } ? A
  : A extends WithoutForm ? never
  : A extends AnyFunction ? A
  : { [Key in keyof A]: Key extends symbol ? A[Key] : Held<A[Key]> }

/** Makes a value with a part that JSON cannot hold a type error that names the mistake. */
export type CheckedJson<A> = [A] extends [Held<A>] ? unknown : {
  readonly result: "JSON cannot hold a part of the result: a bigint, a symbol, a Map, a Set, a promise or bytes"
}
