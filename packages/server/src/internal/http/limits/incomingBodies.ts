/**
 * The bodies that are being read, counted as they arrive.
 */
import { constTrue } from "effect/Function"
import { clientOf } from "../../base/client.ts"
import type { BodyCounter, HttpRequest } from "../messages/adapter.ts"
import { type Load, SimpleClaim } from "./load.ts"

/** Counts the bodies of an endpoint. A body that arrives at once, as most do, is never counted here. */
export class IncomingBodies implements BodyCounter {
  readonly #bodies = new Map<HttpRequest, SimpleClaim>()
  readonly #load: Load

  constructor(load: Load) {
    this.#load = load
  }

  arrived(request: HttpRequest, bytes: number, drop: () => void): void {
    let body = this.#bodies.get(request)
    if (body !== undefined) this.#load.charge(body, bytes)
    else {
      // A body that is dropped is refused by the endpoint.
      this.#bodies.set(request, body = new SimpleClaim(undefined, constTrue, drop))
      this.#load.add(body, clientOf(request), bytes)
    }
  }

  /** Stops counting a body, because it was read completely or was refused. */
  received(request: HttpRequest): void {
    if (this.#bodies.size === 0) return
    const body = this.#bodies.get(request)
    if (body === undefined) return
    this.#bodies.delete(request)
    this.#load.remove(body)
  }
}
