/**
 * The refusals of an endpoint: they are answered, counted where somebody counts, and told to the log.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as LogLevel from "effect/LogLevel"
import { logged } from "../text.ts"
import type { Host } from "../dispatch/serverCore.ts"
import type { HttpAnswer } from "./adapter.ts"
import { refuse, type Refused } from "./refusal.ts"

export class Refusals {
  readonly #host: Host
  readonly #context: Context.Context<never>

  constructor(host: Host, context: Context.Context<never>) {
    this.#host = host
    this.#context = context
  }

  /** Middleware sees nothing of what is refused before it is handled: the log at its level Debug does. */
  refuse(answer: HttpAnswer, refused: Refused, id?: JsonRpc.Id): void {
    const { error, status } = refused
    this.because(`HTTP: refused a request with ${status}, ${logged(error.message)}`, "Debug", answer, refused, id)
  }

  /** The same, with words for the log that the client does not get. */
  because(text: string, level: LogLevel.Severity, answer: HttpAnswer, refused: Refused, id?: JsonRpc.Id): void {
    Effect.runForkWith(this.#context)(Effect.logWithLevel(level)(text))
    this.#host.observer?.refused(refused.status)
    refuse(answer, refused, id)
  }
}
