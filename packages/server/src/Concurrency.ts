/**
 * A concurrency limit: how many requests are handled at the same time, and how many wait for it.
 *
 * It counts `tools/call` by default, for the whole server together. At the bound the next ones wait, in order, and can be
 * cancelled meanwhile. Where too many wait already, or one has waited too long, it is refused with the error code `503`, which is
 * outside of what JSON-RPC reserves.
 *
 * @example
 * // One report at a time for each principal.
 * const limit = Concurrency.layer({ limit: 1, key: Middleware.perPrincipal })
 */
import * as McpError from "@skein/protocol/McpError"
import type { Answer, Exchange } from "@skein/runtime/Exchange"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/captured.ts"
import { describe, inWords } from "./internal/refusal.ts"
import { targetOf } from "./internal/target.ts"
import * as Middleware from "./Middleware.ts"

/** The code of the error that refuses a request. */
export const code = 503

/** The bounds. */
export interface Options {
  /** How many requests of a key are handled at the same time: 16 by default, 1 at least. */
  readonly limit?: number
  /** How many of a key wait: 64 by default. Beyond, they are refused at once. */
  readonly maxWaiting?: number
  /** How long one waits: 30 seconds by default. Then it is refused. */
  readonly maxWait?: Duration.Input
  /** What is counted apart: `Middleware.perServer` by default. */
  readonly key?: Middleware.Key
  /** The methods that count: `["tools/call"]` by default. */
  readonly methods?: Middleware.Methods
}

/** Limits how many requests are handled at the same time. */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  captured.layer<never>((catalog) => {
    const room = new Room(options)
    const key = options.key ?? Middleware.perServer
    const counts = Middleware.includes(options.methods ?? ["tools/call"])
    return catalog.middleware.add((next) => (exchange) =>
      counts(exchange.method)
        ? room.enter(key(exchange, targetOf(catalog, exchange)), exchange, next)
        : next(exchange)
    )
  })

/** The requests of one key. It is there for as long as there are any. */
interface Desk {
  readonly key: string
  handled: number
  readonly waiting: Set<Ticket>
}

/** One request, and whether it is being handled. */
class Ticket {
  readonly desk: Desk
  admitted = false
  wake: (() => void) | undefined = undefined

  constructor(desk: Desk) {
    this.desk = desk
  }
}

class Room {
  readonly #desks = new Map<string, Desk>()
  readonly #limit: number
  readonly #maxWaiting: number
  readonly #maxWait: Duration.Duration

  constructor({ limit, maxWait, maxWaiting }: Options) {
    this.#limit = Math.max(1, Math.floor(limit ?? 16))
    this.#maxWaiting = Math.max(0, Math.floor(maxWaiting ?? 64))
    this.#maxWait = Duration.fromInputUnsafe(maxWait ?? "30 seconds")
  }

  /** Nothing is taken before there is a finalizer that gives it back, since a fiber may be interrupted between any two steps. */
  enter(key: string, exchange: Exchange, next: Middleware.Handler): ReturnType<Middleware.Handler> {
    return Effect.suspend(() => {
      let ticket: Ticket | undefined
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          ticket = new Ticket(this.#desk(key))
          return this.#admit(ticket, exchange, next)
        }),
        () => ticket === undefined ? undefined : this.#leave(ticket)
      )
    })
  }

  #desk(key: string): Desk {
    const known = this.#desks.get(key)
    if (known !== undefined) return known
    const desk: Desk = { key, handled: 0, waiting: new Set() }
    this.#desks.set(key, desk)
    return desk
  }

  #admit(ticket: Ticket, exchange: Exchange, next: Middleware.Handler): ReturnType<Middleware.Handler> {
    const { desk } = ticket
    if (desk.handled < this.#limit) {
      desk.handled++
      ticket.admitted = true
      return next(exchange)
    }
    if (desk.waiting.size >= this.#maxWaiting) {
      return this.#refuse(exchange, `at most ${this.#limit} at the same time and ${this.#maxWaiting} that wait`)
    }
    const admitted = Effect.callback<void>((resume) => {
      // In a turn of its own: what ends would otherwise run all that waits for it, one inside of the other.
      ticket.wake = () => resume(Effect.yieldNow)
      desk.waiting.add(ticket)
    })
    return Effect.flatMap(Effect.timeoutOption(admitted, this.#maxWait), () =>
      ticket.admitted
        ? next(exchange)
        : this.#refuse(
          exchange,
          `at most ${this.#limit} at the same time, and none ended within ${inWords(Duration.toMillis(this.#maxWait))}`
        ))
  }

  #refuse(exchange: Exchange, why: string): Effect.Effect<Answer, McpError.McpError> {
    return Effect.fail(McpError.other(code, `Too busy for ${describe(exchange)}: ${why}. Try again later`))
  }

  #leave(ticket: Ticket): undefined {
    const { desk } = ticket
    if (ticket.admitted) {
      const [first] = desk.waiting
      if (first === undefined) desk.handled--
      else {
        desk.waiting.delete(first)
        first.admitted = true
        first.wake!()
      }
    } else desk.waiting.delete(ticket)
    if (desk.handled === 0) this.#desks.delete(desk.key)
    return undefined
  }
}
