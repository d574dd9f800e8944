/**
 * Limits the number of requests that are handled at the same time.
 */
import * as McpError from "@skein/protocol/McpError"
import type { Answer, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import * as Effect from "effect/Effect"
import { clientOf, largestBeside } from "../base/client.ts"
import { describeRequest, formatMillis } from "./failureAnswer.ts"

type Handler = Dispatcher<McpRequest>

/** The requests of one key. It exists as long as the key has requests. */
interface KeyQueue {
  readonly key: string
  handled: number
  /** The numbers of handled and of waiting requests of each client. */
  readonly handledOf: KeyedCounter
  readonly waitingOf: KeyedCounter
  readonly waiting: Set<Ticket>
}

/** One request of a queue. */
interface Ticket {
  readonly queue: KeyQueue
  readonly client: string
  admitted: boolean
  wake: (() => void) | undefined
}

interface Bounds {
  readonly limit: number
  readonly maxPerClient: number
  readonly maxQueuedRequests: number
  /** In milliseconds. */
  readonly waitTimeout: number
}

/**
 * Handles up to `limit` requests of each key at the same time, and of these up to `maxPerClient` of one client. Up to
 * `maxQueuedRequests` more of each key wait in order, each for `waitTimeout`. A full queue admits a request of another client in
 * place of the last one of the client that has the most. `code` is the code of the JSON-RPC error that refuses a request.
 */
export const makeConcurrencyLimiter = (code: number, bounds: Bounds) => {
  const queues = new Map<string, KeyQueue>()

  /** Handles a request as soon as the limit allows it. */
  const run = (key: string, request: RequestContext, next: Handler): ReturnType<Handler> =>
    // The finalizer is added before a slot is taken, because a fiber may be interrupted between any two steps.
    Effect.suspend(() => {
      let ticket: Ticket | undefined
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          ticket = { queue: queueOf(key), client: clientOf(request.origin), admitted: false, wake: undefined }
          return admit(ticket, request, next)
        }),
        () => ticket === undefined ? undefined : leave(ticket)
      )
    })

  const queueOf = (key: string): KeyQueue => {
    const known = queues.get(key)
    if (known !== undefined) return known
    const [handledOf, waitingOf] = [new KeyedCounter(), new KeyedCounter()]
    const queue: KeyQueue = { key, handled: 0, handledOf, waitingOf, waiting: new Set() }
    queues.set(key, queue)
    return queue
  }

  const admit = (ticket: Ticket, request: RequestContext, next: Handler): ReturnType<Handler> => {
    const { queue } = ticket
    const { limit, maxQueuedRequests, waitTimeout } = bounds
    if (queue.handled < limit && mayRun(ticket)) {
      start(ticket)
      return next(request)
    }
    if (queue.waiting.size >= maxQueuedRequests && !makeRoom(ticket)) {
      return refuse(request, `at most ${limit} are handled at the same time and ${maxQueuedRequests} wait`)
    }
    const admitted = Effect.callback<void>((resume) => {
      // Resumes in a turn of its own. Otherwise a request that ends would run all waiting requests inside of each
      // other.
      ticket.wake = () => resume(Effect.yieldNow)
      queue.waiting.add(ticket)
      queue.waitingOf.add(ticket.client, 1)
    })
    return Effect.flatMap(Effect.timeoutOption(admitted, waitTimeout), () =>
      ticket.admitted
        ? next(request)
        : refuse(
          request,
          ticket.wake === undefined
            ? `at most ${limit} are handled at the same time, and this client has the most of those that wait`
            : `at most ${limit} are handled at the same time, and none ended within ${formatMillis(waitTimeout)}`
        ))
  }

  /** Whether its client has fewer requests than allowed. Clients that cannot be distinguished are not bounded. */
  const mayRun = ({ client, queue }: Ticket): boolean =>
    client === "" || queue.handledOf.of(client) < bounds.maxPerClient

  const start = (ticket: Ticket): void => {
    const { client, queue } = ticket
    ticket.admitted = true
    queue.handled++
    queue.handledOf.add(client, 1)
  }

  /** Refuses the last waiting request of a client that has at least twice as many as the client of this one. */
  const makeRoom = ({ client, queue }: Ticket): boolean => {
    const larger = largestBeside(queue.waitingOf.entries, queue.waitingOf.of(client))
    const last = Array.from(queue.waiting).findLast((one) => one.client === larger)
    if (last === undefined) return false
    stopWaiting(last)
    const { wake } = last
    last.wake = undefined
    wake!()
    return true
  }

  const stopWaiting = (ticket: Ticket): void => {
    const { client, queue } = ticket
    if (queue.waiting.delete(ticket)) queue.waitingOf.add(client, -1)
  }

  /** Starts the first waiting request of the client that has the fewest. */
  const startNext = ({ handledOf, waiting }: KeyQueue): void => {
    let first: Ticket | undefined
    for (const one of waiting) {
      if (mayRun(one) && (first === undefined || handledOf.of(one.client) < handledOf.of(first.client))) {
        first = one
      }
    }
    if (first === undefined) return
    stopWaiting(first)
    start(first)
    first.wake!()
  }

  const refuse = (request: RequestContext, why: string): Effect.Effect<Answer, McpError.McpError> =>
    Effect.fail(
      McpError.other(code, `Too many requests of ${describeRequest(request)}: ${why}. Try again later`)
    )

  const leave = (ticket: Ticket): undefined => {
    const { client, queue } = ticket
    if (ticket.admitted) {
      queue.handled--
      queue.handledOf.add(client, -1)
      startNext(queue)
    } else stopWaiting(ticket)
    // A refused request may leave after its key has got another queue.
    if (queue.handled === 0 && queues.get(queue.key) === queue) queues.delete(queue.key)
    return undefined
  }

  return {
    run,
    /** The number of keys that have requests now. */
    get size() {
      return queues.size
    }
  }
}
