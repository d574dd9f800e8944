/**
 * Answers a server that asks the user: by a form since 2025-06-18, by an address to visit since 2025-11-25.
 *
 * A host provides handlers as a layer, and the client declares what is provided, in the way of the revision that is
 * negotiated: "Clients that support elicitation MUST declare the `elicitation` capability". The same handlers answer in
 * all revisions.
 *
 * ```ts
 * const Asking = Elicitation.layer({
 *   form: ({ asker, defaults, message, requestedSchema }) =>
 *     Effect.map(showForm(asker.server?.name, message, requestedSchema, defaults), (values) =>
 *       values === undefined ? Elicitation.decline : Elicitation.accept(values)),
 *   url: ({ asker, host, message, url, warnings }) =>
 *     Effect.map(confirm(asker.server?.name, message, url.href, host, warnings), (yes) =>
 *       yes ? Elicitation.consent() : Elicitation.decline)
 * })
 * const Live = Client.layer(transport).pipe(Layer.provide(Asking))
 * ```
 *
 * **What the specification demands of the user interface** (2026-07-28, elicitation). "MCP clients MUST: Provide UI
 * that makes it clear which server is requesting information. Respect user privacy and provide clear decline and cancel
 * options. For form mode, allow users to review and modify their responses before sending. For URL mode, clearly
 * display the target domain/host and gather user consent before navigation to the target URL."
 *
 * **Addresses.** The client itself never opens or fetches one; the host does, once the user agreed. "When handling URL
 * mode elicitation requests, MCP clients: MUST NOT automatically pre-fetch the URL or any of its metadata. MUST NOT
 * open the URL without explicit consent from the user. MUST show the full URL to the user for examination before
 * consent. MUST open the URL provided by the server in a secure manner that does not enable the client or LLM to
 * inspect the content or user inputs. SHOULD highlight the domain of the URL to mitigate subdomain spoofing. SHOULD
 * have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)." What is neither `http` nor `https` reaches
 * no handler.
 *
 * **Gotchas.** `initialize` is written before it is known what a server speaks: one that agrees on 2025-06-18 takes a
 * host that has `url` alone for one with forms, and is refused (`-32601`) when it asks. Interrupting the call, or the
 * server's cancelling its question, interrupts the handler. A handler that dies, and content that does not fit the
 * form, are logged; the server hears of an internal error and nothing else, and in the request era the call fails with
 * `InputRefused`. Where a question must not stay open for ever, the handler needs a timeout of its own.
 */
import type * as Wire from "@skein/protocol/Elicitation"
import { Elicit } from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import type { RequestingServer } from "./RequestingServer.ts"
import { capture, type Needed } from "./internal/input/captured.ts"
import * as Form from "./internal/input/form.ts"
import { Elicitation, type Forms, malformed } from "./internal/input/services.ts"
import * as Url from "./internal/input/url.ts"

/** A form to fill in. */
export interface FormRequest {
  /** Who asks. Show it to the user. */
  readonly server: RequestingServer
  /** Why the server asks. */
  readonly message: string
  /** The fields, with their names of the newest revision, whatever revision is spoken. */
  readonly requestedSchema: Wire.RequestedSchema
  /** What the fields are filled in with to begin with: the defaults of the schema, without those that do not fit it. */
  readonly defaults: { readonly [field: string]: Wire.ElicitValue }
  /**
   * Why content would not be sent if it were accepted, in a line that names the field and not its value; undefined where
   * it would be. For a form that tells its user before they leave it.
   */
  readonly problem: (content: Content) => string | undefined
}

/** An address that the user should visit. */
export interface UrlRequest {
  /** Who asks. Show it to the user. */
  readonly server: RequestingServer
  /** Why the server asks. */
  readonly message: string
  /** The address. Show all of it (`url.href`) before the user agrees. */
  readonly url: URL
  /** The host of the address, and its port. Show it clearly. */
  readonly host: string
  /** What to warn the user of. */
  readonly warnings: ReadonlyArray<Warning>
  /** In 2025-11-25: what `notifications/elicitation/complete` will name when the visit is over. */
  readonly elicitationId: string | undefined
  /**
   * Whether a call was refused until the visit is over (2025-11-25, error `-32042`). Then the client waits, and makes
   * the call once more: see {@link consent}.
   */
  readonly required: boolean
}

/** What to warn the user of, before they agree to visit an address. */
export type Warning = Url.Warning

/** What was entered into a form. A member that is `undefined` was left empty by the user, and gets no default. */
export type Content = Form.Content

/** What the user did with a form. */
export type FormAnswer =
  | { readonly action: "accept"; readonly content: Content }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }

/** What the user said to an address. */
export type UrlAnswer =
  | { readonly action: "accept"; readonly done?: Effect.Effect<unknown> | undefined }
  | { readonly action: "decline" }
  | { readonly action: "cancel" }

/**
 * The user submitted the form. Fields that are missing in the content are filled with the defaults of the schema
 * (SEP-1034). Content that does not fit the schema, or has fields that were not asked for, is never sent.
 */
export const accept = (content: Content = {}): FormAnswer => ({ action: "accept", content })

/**
 * The user agreed to visit the address. Where a call waits for the end of the visit, `done` is what a control of the
 * host's gives: "Clients SHOULD still provide manual controls that let the user retry or cancel the original request
 * […] if the notification never arrives." The call goes on when the server says that the visit is complete, or when
 * `done` ends, whichever comes first.
 */
export const consent = (done?: Effect.Effect<unknown>): UrlAnswer =>
  done === undefined ? { action: "accept" } : { action: "accept", done }

/** The user said no. */
export const decline: { readonly action: "decline" } = { action: "decline" }

/** The user dismissed the question without an answer. */
export const cancel: { readonly action: "cancel" } = { action: "cancel" }

/** How the user is asked. What is not given is not declared, and with neither of them nothing is. */
export interface Handlers<RF = never, RU = never> {
  /** Shows a form. */
  readonly form?: ((request: FormRequest) => Effect.Effect<FormAnswer, never, RF>) | undefined
  /** How many fields a form may have: 1,000 by default. One that has more is refused, as one is that cannot be read. */
  readonly maxFields?: number | undefined
  /**
   * Asks for consent to visit an address, and opens it if the user agrees. Before 2025-11-25 there are no addresses: a
   * host that has only this declares nothing there.
   */
  readonly url?: ((request: UrlRequest) => Effect.Effect<UrlAnswer, never, RU>) | undefined
}

export { Elicitation }

const fill = (form: Form.Form, answer: FormAnswer): Effect.Effect<Wire.ElicitResult> => {
  // "The `content` field is typically omitted": what the user did not submit stays here.
  if (answer.action !== "accept") return Effect.succeed({ action: answer.action })
  const settled = form.settle(answer.content)
  return Result.isSuccess(settled)
    ? Effect.succeed({ action: "accept", content: settled.success })
    : Effect.die(new Error(`The host's answer to ${Elicit.name} was not sent: ${settled.failure}`))
}

/**
 * Answers with handlers. What they need besides a scope, of which each question has its own, is captured here. Several
 * questions may be asked at the same time: a host that can show one at a time queues them, with a `Semaphore` for
 * instance.
 */
export const layer = <RF = never, RU = never>(
  { form, maxFields, url }: Handlers<RF, RU>
): Layer.Layer<Elicitation, never, Needed<RF | RU>> =>
  Layer.effect(
    Elicitation,
    Effect.map(capture<RF | RU>(), (provide): Forms => ({
      form: form && (({ message, requestedSchema }, asker, forms) =>
        Result.match(Form.read(requestedSchema, maxFields, forms), {
          onFailure: malformed,
          onSuccess: (read) => {
            const { defaults, settle } = read
            const problem = (content: Content) => Result.getOrUndefined(Result.flip(settle(content)))
            const request = { server: asker, message, requestedSchema, defaults, problem }
            return Result.succeed(
              Effect.flatMap(provide(Effect.suspend(() => form(request))), (answer) => fill(read, answer))
            )
          }
        })),
      url: url && (({ elicitationId, message, url: text }, asker, required) =>
        Result.match(Url.read(text), {
          onFailure: malformed,
          onSuccess: (address) => {
            const { host } = address
            const warnings = Url.warnings(address)
            const request = { server: asker, message, url: address, host, warnings, elicitationId, required }
            return Result.succeed(provide(Effect.suspend(() => url(request))))
          }
        }))
    }))
  )
