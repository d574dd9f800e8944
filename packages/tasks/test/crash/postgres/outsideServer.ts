/**
 * The outside world: a server of the test, in which steps act, and which can make them wait.
 */
import * as Effect from "effect/Effect"
import { once } from "node:events"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { Call } from "../outsideLog.ts"

/** An effect: by which process, and when by the clock of the test (`performance.now`). */
export interface Done extends Call {
  readonly worker: number
  readonly at: number
}

/** A process that waits at a gate. */
interface Waiting {
  readonly gate: string
  readonly worker: number
  readonly response: ServerResponse
}

/** The server. */
export class Outside {
  /** All effects, in order. */
  readonly done: Array<Done> = []
  #keys = new Set<string>()
  #waiting: Array<Waiting> = []
  readonly #open = new Set<string>()
  #watchers = new Set<() => void>()
  readonly #server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://outside")
    const worker = Number(searchParams.get("worker"))
    const gate = searchParams.get("gate")
    if (gate !== null && this.#open.has(gate)) response.end()
    else if (gate !== null) {
      const waiting = { gate, worker, response }
      this.#waiting.push(waiting)
      // The process was killed, or the step interrupted.
      response.on("close", () => this.#waiting = this.#waiting.filter((other) => other !== waiting))
    } else {
      const key = searchParams.get("key")!
      if (pathname === "/known") response.write(String(this.#keys.has(key)))
      else {
        const [task, step] = [searchParams.get("task")!, searchParams.get("step")!]
        this.#keys.add(key)
        this.done.push({ task, step, key, order: Number(searchParams.get("order")), worker, at: performance.now() })
      }
      response.end()
    }
    for (const watcher of this.#watchers) watcher()
  })

  static async open(): Promise<Outside> {
    const outside = new Outside()
    outside.#server.keepAliveTimeout = 600_000
    outside.#server.listen(0, "127.0.0.1")
    await once(outside.#server, "listening")
    return outside
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The processes that wait at a gate. */
  at(gate: string): ReadonlyArray<number> {
    return this.#waiting.filter((waiting) => waiting.gate === gate).map(({ worker }) => worker)
  }

  /** The gates with waiting processes. */
  get gates(): ReadonlyArray<string> {
    return this.#waiting.map(({ gate }) => gate)
  }

  /** Lets the processes that wait at a gate continue, or one of them. */
  open(gate: string, worker?: number): void {
    for (const waiting of this.#waiting) {
      if (waiting.gate === gate && (worker ?? waiting.worker) === waiting.worker) waiting.response.end()
    }
  }

  /** Opens a gate for all processes, now and later: a task may have moved to yet another process. */
  openForGood(gate: string): void {
    this.#open.add(gate)
    this.open(gate)
  }

  /** Waits until a condition holds, which each request checks. */
  async until<A>(look: () => A | undefined | false, what: string, patience = 30_000): Promise<A> {
    const timer = Promise.withResolvers<never>()
    const late = setTimeout(() => timer.reject(new Error(`Never in ${patience} ms: ${what}`)), patience)
    const next = Promise.withResolvers<A>()
    const watch = () => {
      const found = look()
      if (found !== undefined && found !== false) next.resolve(found)
    }
    this.#watchers.add(watch)
    try {
      watch()
      return await Promise.race([next.promise, timer.promise])
    } finally {
      clearTimeout(late)
      this.#watchers.delete(watch)
    }
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

const get = (outside: string, path: string, query: Record<string, string>): Effect.Effect<string> =>
  Effect.promise(async (signal) => {
    const search = new URLSearchParams({ ...query, worker: String(process.pid) })
    return (await fetch(`${outside}/${path}?${search}`, { signal })).text()
  })

/** The effects that a process makes, and those that the outside world knows, by key. */
export const world = (outside: string) => ({
  act: ({ key, order, step, task }: Call) => Effect.asVoid(get(outside, "act", { task, order: `${order}`, step, key })),
  known: (key: string) => Effect.map(get(outside, "known", { key }), (known) => known === "true"),
  /** Waits until the test opens the gate. */
  gate: (gate: string) => Effect.asVoid(get(outside, "gate", { gate }))
})
