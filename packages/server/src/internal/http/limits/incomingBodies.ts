/**
 * The bodies that are being read, counted as they arrive.
 */
import { constTrue } from "effect/Function"
import { clientOf } from "../../base/client.ts"
import type { HttpRequest } from "../messages/adapter.ts"
import { type Load, SimpleClaim } from "./load.ts"

/** Counts the bodies of an endpoint. A body that arrives at once, as most do, is never counted here. */
export const makeIncomingBodies = (load: Load) => {
  const bodies = new Map<HttpRequest, SimpleClaim>()

  const arrived = (request: HttpRequest, bytes: number, drop: () => void): void => {
    let body = bodies.get(request)
    if (body !== undefined) load.charge(body, bytes)
    else {
      // A body that is dropped is refused by the endpoint.
      bodies.set(request, body = new SimpleClaim(undefined, constTrue, drop))
      load.add(body, clientOf(request), bytes)
    }
  }

  /** Stops counting a body, because it was read completely or was refused. */
  const received = (request: HttpRequest): void => {
    if (bodies.size === 0) return
    const body = bodies.get(request)
    if (body === undefined) return
    bodies.delete(request)
    load.remove(body)
  }

  return { arrived, received }
}

export type IncomingBodies = ReturnType<typeof makeIncomingBodies>
