/**
 * The world outside of the database: a server of the test, where steps act, and where they can be made to wait.
 */
import * as Effect from "effect/Effect"
import { once } from "node:events"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { Call } from "../outsideLog.ts"

/** What was done outside: by which process, and when by the clock of the test (`performance.now`). */
export interface Done extends Call {
  readonly worker: number
  readonly at: number
}

/** Somebody who waits at a gate. */
interface Waiting {
  readonly gate: string
  readonly worker: number
  readonly response: ServerResponse
}

/** See the module's text. */
export class Outside {
  /** Everything that was done, in its order. */
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
      // Gone: killed, or interrupted.
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

  /** Who waits at a gate: the processes. */
  at(gate: string): ReadonlyArray<number> {
    return this.#waiting.filter((waiting) => waiting.gate === gate).map(({ worker }) => worker)
  }

  /** The gates that somebody waits at. */
  get gates(): ReadonlyArray<string> {
    return this.#waiting.map(({ gate }) => gate)
  }

  /** Lets those pass who wait at a gate, or the one of them. */
  open(gate: string, worker?: number): void {
    for (const waiting of this.#waiting) {
      if (waiting.gate === gate && (worker ?? waiting.worker) === waiting.worker) waiting.response.end()
    }
  }

  /** Lets all pass who come to a gate, now and from now on: a task may have moved on to yet another process. */
  openForGood(gate: string): void {
    this.#open.add(gate)
    this.open(gate)
  }

  /** Waits until something is so: it is looked at with each call. */
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

/** What a process does outside, and what of it is known there: by the key. */
export const world = (outside: string) => ({
  act: ({ key, order, step, task }: Call) => Effect.asVoid(get(outside, "act", { task, order: `${order}`, step, key })),
  known: (key: string) => Effect.map(get(outside, "known", { key }), (known) => known === "true"),
  /** Waits until the test opens it. */
  gate: (gate: string) => Effect.asVoid(get(outside, "gate", { gate }))
})
