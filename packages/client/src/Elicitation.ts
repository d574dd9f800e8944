/**
 * Handlers for `elicitation/create`: forms that the user fills in (since 2025-06-18), and URLs that the user visits
 * (since 2025-11-25).
 *
 * Provide handlers as a layer where the client is made. The client declares the capability for them in the form of the
 * negotiated revision: "Clients that support elicitation MUST declare the `elicitation` capability". The same handlers
 * are used in all revisions.
 *
 * **User interface.** "MCP clients MUST: Provide UI that makes it clear which server is requesting information. Respect
 * user privacy and provide clear decline and cancel options. For form mode, allow users to review and modify their
 * responses before sending. For URL mode, clearly display the target domain/host and gather user consent before
 * navigation to the target URL." (2026-07-28, elicitation)
 *
 * **URLs.** The client never opens or fetches a URL. The handler opens it after the user has agreed. "When handling URL
 * mode elicitation requests, MCP clients: MUST NOT automatically pre-fetch the URL or any of its metadata. MUST NOT
 * open the URL without explicit consent from the user. MUST show the full URL to the user for examination before
 * consent. MUST open the URL provided by the server in a secure manner that does not enable the client or LLM to
 * inspect the content or user inputs. SHOULD highlight the domain of the URL to mitigate subdomain spoofing. SHOULD
 * have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)." URLs other than `http` and `https` are
 * refused before the handler runs.
 *
 * **Gotchas.**
 * - The client sends `initialize` before it knows the server's revision. A server that negotiates 2025-06-18 treats a
 *   client with only `url` as one with forms, and its form requests fail with `-32601`.
 * - Interrupting the call interrupts the handler, and so does the server when it cancels its request.
 * - A handler that dies, and content that does not fit the form, are logged. The server receives an internal error
 *   without details. In 2026-07-28 the call fails with `InputRefused`.
 * - The client sets no timeout for the user. If a request must not stay open, add one to the handler.
 *
 * @example
 * const Asking = Elicitation.layer({
 *   form: ({ defaults, message, requestedSchema, server }) =>
 *     Effect.map(showForm(server.label, message, requestedSchema, defaults), (values) =>
 *       values === undefined ? Elicitation.decline : Elicitation.accept(values)),
 *   url: ({ host, message, server, url, warnings }) =>
 *     Effect.map(confirm(server.label, message, url.href, host, warnings), (yes) =>
 *       yes ? Elicitation.consent() : Elicitation.decline)
 * })
 * const Live = Client.layer(transport).pipe(Layer.provide(Asking))
 */
import type * as Wire from "@skein/protocol/Elicitation"
import { Elicit } from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { RequestingServer } from "./RequestingServer.ts"
import * as Form from "./internal/input/form.ts"
import { captureServices, Elicitation, type ElicitationHandler, invalidRequest } from "./internal/input/services.ts"
import * as Url from "./internal/input/url.ts"

/** A form for the user. */
export interface FormRequest {
  /** The server that requests input. Show it to the user. */
  readonly server: RequestingServer
  /** The reason that the server gives. */
  readonly message: string
  /** The fields, in the form of the newest revision, in all revisions. */
  readonly requestedSchema: Wire.RequestedSchema
  /** The initial values of the fields: the defaults of the schema, without invalid ones. */
  readonly defaults: { readonly [field: string]: Wire.ElicitValue }
  /**
   * Returns why content is not valid, in one line that names the field but not its value, or `undefined` if it is
   * valid. Use it to validate a form while the user fills it in.
   */
  readonly problem: (content: Content) => string | undefined
}

/** A URL that the user is asked to visit. */
export interface UrlRequest {
  /** The server that requests input. Show it to the user. */
  readonly server: RequestingServer
  /** The reason that the server gives. */
  readonly message: string
  /** The URL. Show all of it (`url.href`) before the user agrees. */
  readonly url: URL
  /** The host and port of the URL. Show it clearly. */
  readonly host: string
  /** Properties of the URL that the user must be warned of. */
  readonly warnings: ReadonlyArray<Warning>
  /** 2025-11-25: the id in `notifications/elicitation/complete`, which the server sends after the visit. */
  readonly elicitationId: string | undefined
  /**
   * Whether a call failed because the visit is required first (2025-11-25, error `-32042`). Then the client waits for
   * the visit and repeats the call: see {@link consent}.
   */
  readonly required: boolean
}

/**
 * A property of a URL that the user must be warned of.
 *
 * - `punycode`: a label of the host is in Punycode and may look like another name.
 * - `credentials`: the URL has a user name or a password, which may look like the host.
 * - `insecure`: the URL is `http` and its host is not this machine.
 */
export type Warning = Url.Warning

/** The values of a form. A member that is `undefined` is a field that the user left empty. It gets no default. */
export type Content = Form.Content

/** The user's response to a form. */
export type FormAnswer =
  | { readonly action: "accept"; readonly content: Content }
  | { readonly action: "decline" | "cancel" }

/** The user's response to a URL. */
export type UrlAnswer =
  | { readonly action: "accept"; readonly done?: Effect.Effect<unknown> | undefined }
  | { readonly action: "decline" | "cancel" }

/**
 * The user submitted the form. Fields that are missing in the content get the defaults of the schema (SEP-1034).
 * Content that does not match the schema, or has other fields, is never sent.
 *
 * @example
 * Elicitation.accept({ name: "Ada", newsletter: false })
 */
export const accept = (content: Content = {}): FormAnswer => ({ action: "accept", content })

/**
 * The user agreed to visit the URL.
 *
 * If a call waits for the visit (`required`), it continues when the server reports that the visit is complete, or when
 * `done` ends. Use `done` for a button of the user interface: "Clients SHOULD still provide manual controls that let
 * the user retry or cancel the original request […] if the notification never arrives."
 *
 * @example
 * Elicitation.consent(Deferred.await(continueClicked))
 */
export const consent = (done?: Effect.Effect<unknown>): UrlAnswer =>
  done === undefined ? { action: "accept" } : { action: "accept", done }

/** The user declined. */
export const decline: { readonly action: "decline" } = { action: "decline" }

/** The user dismissed the request without a choice. */
export const cancel: { readonly action: "cancel" } = { action: "cancel" }

/** The handlers. The client declares only the modes that have a handler. */
export interface Handlers<RF = never, RU = never> {
  /** Shows a form. One with more than 1,000 fields is refused with `-32602`. */
  readonly form?: ((request: FormRequest) => Effect.Effect<FormAnswer, never, RF>) | undefined
  /**
   * Asks the user for consent to visit a URL, and opens it if the user agrees. URL mode exists since 2025-11-25. In
   * earlier revisions a client with this handler alone does not declare elicitation.
   */
  readonly url?: ((request: UrlRequest) => Effect.Effect<UrlAnswer, never, RU>) | undefined
}

export { Elicitation }

// The answer to such a field cannot be written in a revision that does not have it.
const hasMultipleChoice = ({ properties }: Wire.RequestedSchema): boolean =>
  Object.values(properties).some(({ type }) => type === "array")

const fill = (form: Form.Form, answer: FormAnswer): Effect.Effect<Wire.ElicitResult> => {
  // "The `content` field is typically omitted": values that the user did not submit are not sent.
  if (answer.action !== "accept") return Effect.succeed({ action: answer.action })
  const settled = form.settle(answer.content)
  return Result.isSuccess(settled)
    ? Effect.succeed({ action: "accept", content: settled.success })
    : Effect.die(new Error(`the content for ${Elicit.name} was not sent: ${settled.failure}`))
}

/**
 * Provides handlers. The services that they need are captured when the layer is built; each request has a `Scope` of
 * its own. Several requests may run at the same time. To show them one by one, use a `Semaphore` in the handlers.
 *
 * @example
 * const Declining = Elicitation.layer({ form: () => Effect.succeed(Elicitation.decline) })
 */
export const layer = <RF = never, RU = never>(
  { form, url }: Handlers<RF, RU>
): Layer.Layer<Elicitation, never, Exclude<RF | RU, Scope.Scope>> =>
  Layer.effect(
    Elicitation,
    Effect.map(captureServices<RF | RU>(), (provide): ElicitationHandler => ({
      form: form && (({ message, requestedSchema }, server, forms) =>
        server.revision < "2025-11-25" && hasMultipleChoice(requestedSchema)
          ? invalidRequest(`${server.revision} does not support multiple choice in a form`)
          : Result.match(Form.readForm(requestedSchema, forms), {
            onFailure: invalidRequest,
            onSuccess: (read) => {
              const { defaults, settle } = read
              const problem = (content: Content) => Result.getOrUndefined(Result.flip(settle(content)))
              const request = { server, message, requestedSchema, defaults, problem }
              return Result.succeed(
                Effect.flatMap(provide(Effect.suspend(() => form(request))), (answer) => fill(read, answer))
              )
            }
          })),
      url: url && (({ elicitationId, message, url: text }, server, required) =>
        Result.match(Url.parseUrl(text), {
          onFailure: invalidRequest,
          onSuccess: (address) => {
            const { host } = address
            const warnings = Url.urlWarnings(address)
            const request = { server, message, url: address, host, warnings, elicitationId, required }
            return Result.succeed(provide(Effect.suspend(() => url(request))))
          }
        }))
    }))
  )
