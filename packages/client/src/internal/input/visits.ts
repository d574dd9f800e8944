/**
 * Calls that are refused until the user has visited an address (2025-11-25, error `-32042`).
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
import type { ElicitationHandler, Refusal, UrlConsent } from "./services.ts"

/** How visits are bounded. */
export interface Bounds {
  /** How many addresses one error may list. */
  readonly maxInputRequests: number
  /** How many of them are put to the host at the same time. */
  readonly inputRequestConcurrency: number
}

type Required = ElicitRequestURLParams & { readonly elicitationId: string }

const requiredBy = ({ data }: McpError, { maxInputRequests }: Bounds): ReadonlyArray<Required> => {
  const read = Codec.decode(URLElicitationRequiredErrorData, "2025-11-25", data)
  if (Result.isFailure(read)) return []
  const { elicitations } = read.success
  // "Any elicitations returned in the error MUST be URL mode elicitations and have an `elicitationId` property."
  return elicitations.length <= maxInputRequests &&
      elicitations.every(({ elicitationId }) => elicitationId !== undefined)
    ? elicitations as ReadonlyArray<Required>
    : []
}

/** The visits that somebody waits for. */
export class Visits {
  readonly #waiting = new Map<string, Set<Deferred.Deferred<void>>>()

  /** How many ids are waited for. */
  get size(): number {
    return this.#waiting.size
  }

  /** "Clients MUST ignore notifications referencing unknown or already-completed IDs." */
  heard({ method, params }: JsonRpc.Notification): void {
    if (method !== ElicitationComplete.name || this.#waiting.size === 0) return
    for (const visit of this.#waiting.get(params?.["elicitationId"] as string) ?? []) {
      Deferred.doneUnsafe(visit, Effect.void)
    }
  }

  /**
   * Puts what a call was refused for to the user, and waits until all of it is complete. Gives whether the call may be
   * made once more: not if the error lists nothing that can be visited, the user did not agree, or it took longer than
   * `atMost`.
   */
  attend(
    put: NonNullable<ElicitationHandler["url"]>,
    error: McpError,
    asker: RequestingServer,
    bounds: Bounds,
    atMost: Duration.Input
  ): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const required = requiredBy(error, bounds)
      const visits: Array<Effect.Effect<void, Refusal | UrlConsent>> = []
      for (const params of required) {
        const question = put(params, asker, true)
        if (Result.isFailure(question)) return Effect.succeed(false)
        visits.push(this.#visit(params.elicitationId, question.success))
      }
      if (visits.length === 0) return Effect.succeed(false)
      return Effect.forEach(visits, (visit) => visit, { concurrency: bounds.inputRequestConcurrency, discard: true })
        .pipe(
          Effect.timeoutOption(atMost),
          Effect.match({ onFailure: () => false, onSuccess: (done) => done._tag === "Some" }),
          Effect.catchCause((cause) =>
            Effect.as(Effect.logError(`The visits that ${asker.method} requires failed`, cause), false)
          )
        )
    })
  }

  /** The id is known from before the user is asked, so that a notice that comes early is not missed. */
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
