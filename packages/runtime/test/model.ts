/**
 * A model of one peer: the permitted messages on the wire, one by one, for any order of events. It has no fibers and no
 * effects, only tables and a clock in steps of ten milliseconds.
 */
import type { SessionEnd } from "@skein/runtime/Session"
import { fixedBounds } from "../src/internal/base/fixedBounds.ts"

/** The behaviour of a handler. Waiting handlers are ended by the test. */
export const kinds = ["parked", "masked", "slow", "asks", "sync", "throws", "closes"] as const
export type Kind = typeof kinds[number]

/**
 * - `parked` waits, and ends at once when it is interrupted;
 * - `masked` waits, and cannot be interrupted;
 * - `slow` waits, and when it is interrupted its finalizer waits too;
 * - `asks` sends a request to the other side and returns a result for every outcome of it;
 * - `sync` responds at once, `throws` is a defect at once, `closes` ends the session and responds.
 */
interface Request {
  readonly kind: Kind
  readonly batch: Batch | undefined
  readonly call: number | undefined
  cancelled: boolean
  reported: number
}

interface Batch {
  open: number
  readonly replies: Array<string>
}

interface Call {
  readonly timeout: number
  readonly maxAt: number
  readonly parent: number | undefined
  readonly progresses: boolean
  deadline: number
  value: number
}

export const limits = {
  maxInFlightRequests: 3,
  maxQueuedRequests: 2,
  shutdownTimeout: 100
} as const

export const bounds = {
  ...fixedBounds,
  maxPendingRequests: 3,
  maxRunningNotifications: 2,
  interruptTimeout: 50
}

export class Model {
  /** The sent messages, as text. */
  readonly wire: Array<string> = []
  /** The outcome of each call. */
  readonly outcomes = new Map<number, string>()
  /** The progress that was reported to each call. */
  readonly reported = new Map<number, Array<number>>()
  readonly requests = new Map<number, Request>()
  readonly queue = new Map<number, { readonly kind: Kind; readonly batch: Batch | undefined }>()
  readonly calls = new Map<number, Call>()
  notices = 0
  now = 0
  end: SessionEnd | undefined = undefined
  #draining = false
  #failing = false
  #drainAt = Infinity
  #over = false
  #graceAt = Infinity
  #closed = false
  #starting = 0
  #nextCall = 1

  get #busy(): boolean {
    return this.requests.size >= limits.maxInFlightRequests
  }

  get #full(): boolean {
    return this.#busy && this.queue.size >= limits.maxQueuedRequests
  }

  // ---- messages from the other side

  request(id: number, kind: Kind, batch?: Batch): void {
    if (this.end !== undefined) return batch === undefined ? undefined : this.#less(batch)
    if (this.requests.has(id) || this.queue.has(id)) return this.#reply(batch, `answer ${id} -32600`)
    if (this.#full) return this.#reply(batch, `answer ${id} -32603`)
    if (this.#busy) return void this.queue.set(id, { kind, batch })
    this.#run(id, kind, batch)
  }

  #run(id: number, kind: Kind, batch: Batch | undefined): void {
    const running = { kind, batch, cancelled: false, reported: -Infinity }
    switch (kind) {
      case "sync":
        return this.#reply(batch, `answer ${id} ok`)
      case "throws":
        return this.#reply(batch, `answer ${id} -32603`)
      case "closes":
        this.#starting++
        this.close({ _tag: "Expired" })
        this.#reply(batch, `answer ${id} ok`)
        this.#starting--
        return this.#settle()
      case "asks": {
        if (this.end !== undefined || this.calls.size >= bounds.maxPendingRequests) {
          return this.#reply(batch, `answer ${id} ok`)
        }
        const call = this.#start("question", 100, 100, false, id)
        return void this.requests.set(id, { ...running, call })
      }
      default:
        this.requests.set(id, { ...running, call: undefined })
    }
  }

  batch(members: ReadonlyArray<() => readonly [number, Kind]>): void {
    const batch: Batch = { open: 1, replies: [] }
    this.#starting++
    for (const member of members) {
      const [id, kind] = member()
      batch.open++
      this.request(id, kind, batch)
    }
    this.#less(batch)
    this.#starting--
    this.#settle()
  }

  cancel(id: number): void {
    if (this.end === undefined) this.#cancel(id)
  }

  /** A notification whose handler waits. */
  notice(): void {
    if (this.end === undefined && this.notices < bounds.maxRunningNotifications) this.notices++
  }

  answer(id: number, how: "ok" | "error" | "bad"): void {
    if (this.end === undefined && this.calls.has(id)) this.#called(id, how)
  }

  progress(id: number, value: number): void {
    const call = this.calls.get(id)
    if (this.end !== undefined || call === undefined || !call.progresses || value <= call.value) return
    call.value = value
    call.deadline = Math.min(this.now + call.timeout, call.maxAt)
    this.reported.get(id)!.push(value)
  }

  // ---- actions of this side

  /** Ends a waiting handler, or a waiting finalizer. */
  step(id: number, how: "ok" | "error" | "defect"): void {
    if (this.requests.has(id)) this.#done(id, how === "ok" ? "ok" : how === "error" ? "-32602" : "-32603")
  }

  endNotice(): void {
    if (this.notices === 0) return
    this.notices--
    this.#settle()
  }

  report(id: number, value: number): void {
    const request = this.requests.get(id)
    if (request === undefined || request.cancelled || value <= request.reported) return
    request.reported = value
    this.#send(`progress ${id} ${value}`)
  }

  notify(): void {
    this.#send("notify")
  }

  /** Returns the id of the call, or the failure of a call that ended at once. */
  call(timeout: number, maxTimeout: number, progresses: boolean): number | "Closed" | "LimitExceeded" {
    if (this.end !== undefined) return "Closed"
    if (this.calls.size >= bounds.maxPendingRequests) return "LimitExceeded"
    const id = this.#start("call", timeout, maxTimeout, progresses, undefined)
    this.reported.set(id, [])
    return id
  }

  interrupt(id: number): void {
    if (!this.calls.has(id)) return
    this.calls.delete(id)
    this.outcomes.set(id, "interrupted")
    this.#send(`cancel ${id}`)
  }

  close(end: SessionEnd): void {
    if (this.end !== undefined) {
      if (!this.#draining || end._tag === "ClosedByPeer") return
      this.#draining = false
      // A handler that starts while calls are failed may close the session too, so all calls are failed first.
      if (!this.#failing) this.#interrupt()
      return
    }
    this.end = end
    this.#draining = end._tag === "ClosedByPeer"
    this.#starting++
    this.#failing = true
    for (const id of [...this.calls.keys()]) this.#called(id, "Closed")
    this.#failing = false
    this.#starting--
    if (this.#draining && this.#running > 0) {
      this.#drainAt = this.now + limits.shutdownTimeout
    } else this.#interrupt()
  }

  tick(): void {
    this.now += 10
    for (const [id, call] of [...this.calls]) {
      if (call.deadline > this.now || !this.calls.has(id)) continue
      this.#send(`cancel ${id}`)
      this.#called(id, "Timeout")
    }
    if (this.#draining && this.now >= this.#drainAt) this.#interrupt()
    if (this.#over && this.now >= this.#graceAt) this.#closed = true
  }

  // ---- internals

  get #running(): number {
    return this.#starting + this.requests.size + this.queue.size + this.notices
  }

  #send(text: string): void {
    if (!this.#closed) this.wire.push(text)
  }

  #reply(batch: Batch | undefined, text: string): void {
    if (batch === undefined) return this.#send(text)
    batch.replies.push(text)
    this.#less(batch)
  }

  #less(batch: Batch): void {
    if (--batch.open === 0 && batch.replies.length > 0) this.#send(`[${batch.replies.join(", ")}]`)
  }

  #start(method: string, timeout: number, max: number, progresses: boolean, parent: number | undefined): number {
    const id = this.#nextCall++
    const deadline = this.now + Math.min(timeout, max)
    this.calls.set(id, { timeout, maxAt: this.now + max, parent, progresses, deadline, value: -Infinity })
    this.#send(`${method} ${id}`)
    return id
  }

  #called(id: number, outcome: string): void {
    const { parent } = this.calls.get(id)!
    this.calls.delete(id)
    if (parent === undefined) this.outcomes.set(id, outcome)
    else this.#done(parent, "ok")
  }

  #done(id: number, outcome: string): void {
    const { batch, cancelled } = this.requests.get(id)!
    if (!cancelled) this.#reply(batch, `answer ${id} ${outcome}`)
    else if (batch !== undefined) this.#less(batch)
    this.requests.delete(id)
    this.#next()
    this.#settle()
  }

  /** Queued requests start in order while the number of running requests permits. */
  #next(): void {
    this.#starting++
    for (const [id, { batch, kind }] of this.queue) {
      if (this.#busy || (this.end !== undefined && !this.#draining)) break
      this.queue.delete(id)
      this.#run(id, kind, batch)
    }
    this.#starting--
  }

  #cancel(id: number): void {
    const waiting = this.queue.get(id)
    if (waiting !== undefined) {
      this.queue.delete(id)
      if (waiting.batch !== undefined) this.#less(waiting.batch)
      return this.#settle()
    }
    const request = this.requests.get(id)
    if (request === undefined || request.cancelled) return
    request.cancelled = true
    if (request.call !== undefined) {
      this.calls.delete(request.call)
      this.#send(`cancel ${request.call}`)
    }
    if (request.kind === "parked" || request.kind === "asks") this.#done(id, "")
  }

  #interrupt(): void {
    this.#draining = false
    this.#over = true
    this.#graceAt = this.now + bounds.interruptTimeout
    const waiting = [...this.queue.values()]
    this.queue.clear()
    for (const { batch } of waiting) if (batch !== undefined) this.#less(batch)
    for (const id of [...this.requests.keys()]) this.#cancel(id)
    this.notices = 0
    this.#settle()
  }

  #settle(): void {
    if (this.end === undefined || this.#running > 0) return
    if (this.#draining) this.#interrupt()
    else if (this.#over) this.#closed = true
  }
}
