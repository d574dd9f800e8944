/**
 * Handles calls that are refused until the user has visited a URL (2025-11-25, error `-32042`).
 */
import * as Codec from "@skein/protocol/Codec"
import { type ElicitRequestURLParams, URLElicitationRequiredErrorData } from "@skein/protocol/Elicitation"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { McpError } from "@skein/protocol/McpError"
import { ElicitationComplete } from "@skein/protocol/Method"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { RequestingServer } from "../../RequestingServer.ts"
import { inputRequestConcurrency, maxInputRequests } from "./handlers.ts"
import type { ElicitationHandler, Refusal, UrlConsent } from "./services.ts"

type Required = ElicitRequestURLParams & { readonly elicitationId: string }

const requiredBy = ({ data }: McpError): ReadonlyArray<Required> => {
  const read = Codec.decode(URLElicitationRequiredErrorData, "2025-11-25", data)
  if (Result.isFailure(read)) return []
  const { elicitations } = read.success
  // "Any elicitations returned in the error MUST be URL mode elicitations and have an `elicitationId` property."
  return elicitations.length <= maxInputRequests &&
      elicitations.every(({ elicitationId }) => elicitationId !== undefined)
    ? elicitations as ReadonlyArray<Required>
    : []
}

/** The visits that calls wait for. */
export class Visits {
  readonly #waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  /** "Clients MUST ignore notifications referencing unknown or already-completed IDs." */
  onNotification({ method, params }: JsonRpc.Notification): void {
    if (method !== ElicitationComplete.name || this.#waiting.size === 0) return
    for (const visit of this.#waiting.get(params?.["elicitationId"] as string) ?? []) {
      Deferred.doneUnsafe(visit, Effect.void)
    }
  }

  /**
   * Asks the user to visit the URLs of an error, and waits until all visits are complete. Returns whether the call may
   * be repeated. It may not if the error lists no URL that can be visited, if the user does not agree, or if the visits
   * take longer than `atMost`.
   */
  awaitAll(
    ask: NonNullable<ElicitationHandler["url"]>,
    error: McpError,
    server: RequestingServer,
    atMost: Duration.Input
  ): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const required = requiredBy(error)
      const visits: Array<Effect.Effect<void, Refusal | UrlConsent>> = []
      for (const params of required) {
        const question = ask(params, server, true)
        if (Result.isFailure(question)) return Effect.succeed(false)
        visits.push(this.#visit(params.elicitationId, question.success))
      }
      if (visits.length === 0) return Effect.succeed(false)
      return Effect.forEach(visits, (visit) => visit, { concurrency: inputRequestConcurrency, discard: true })
        .pipe(
          Effect.timeoutOption(atMost),
          Effect.match({ onFailure: () => false, onSuccess: (done) => done._tag === "Some" }),
          Effect.catchCause((cause) =>
            Effect.as(Effect.logError(`The visits that ${server.method} requires failed`, cause), false)
          )
        )
    })
  }

  /** Registers the id before the user is asked, so that an early notification is not missed. */
  #visit(id: string, consent: Effect.Effect<UrlConsent, Refusal>): Effect.Effect<void, Refusal | UrlConsent> {
    const complete = Deferred.makeUnsafe<void>()
    const finished = Effect.flatMap(consent, (visit) => {
      if (visit.action !== "accept") return Effect.fail(visit)
      const over = Deferred.await(complete)
      return visit.done === undefined ? over : Effect.raceFirst(over, Effect.asVoid(visit.done))
    })
    return Effect.suspend(() => {
      const waiting = this.#waiting.get(id) ?? new Set()
      this.#waiting.set(id, waiting.add(complete))
      return Effect.ensuring(
        finished,
        Effect.sync(() => {
          waiting.delete(complete)
          if (waiting.size === 0) this.#waiting.delete(id)
        })
      )
    })
  }
}
