/**
 * Orders, and a server that is killed and restarted until all of them have ended.
 */
import type { ClientError } from "@skein/client/ClientError"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { check, read, type Summary } from "./checks.ts"
import { Child } from "./child.ts"
import * as Clients from "./clients.ts"
import { calls } from "./outsideLog.ts"
import { randomFrom } from "./seededRandom.ts"

/** The amount of work, and the times of the kills. */
export interface Plan {
  readonly orders: number
  /** Orders that run at the same time. */
  readonly concurrency: number
  /** Milliseconds, at most, that a step takes before and after it acts. */
  readonly pace: number
  /** Milliseconds, at most, from the moment the server listens until it is killed. */
  readonly life: number
  /** The seed of all random choices. The machine adds its own: no two runs are equal. */
  readonly seed: number
  /** The kill after which it is not killed again. */
  readonly kills: number
}

export interface Report extends Summary {
  readonly kills: number
  readonly stops: number
  /** Questions that were asked before a kill and answered after it. */
  readonly survived: number
  /** Milliseconds until it listened, for its slowest start. */
  readonly slowest: number
  /** Milliseconds of the longest shutdown. */
  readonly longest: number
}

/** Milliseconds in which the remaining tasks must end. */
const patience = 60_000

/** Runs the orders. `staged` receives the description of the stage at which they are. */
export const crash = async (plan: Plan, staged?: Clients.Staged): Promise<Report> => {
  const folder = mkdtempSync(join(tmpdir(), "skein-crash-"))
  try {
    return await run(plan, folder, staged)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const run = async (
  { concurrency, kills: maxKills, life, orders, pace, seed }: Plan,
  folder: string,
  staged: Clients.Staged | undefined
): Promise<Report> => {
  const file = join(folder, "tasks.db")
  const outside = join(folder, "outside")
  const random = randomFrom(seed)
  const problems: Array<string> = []
  let port = "0"
  let lives = 0
  let kills = 0
  let stops = 0
  let slowest = 0
  let longest = 0

  const spawn = (): Child => {
    lives++
    const args = ["--file", file, "--outside", outside, "--port", port, "--pace", String(pace)]
    return new Child("server.ts", args)
  }

  /** Waits until it listens. */
  const up = async (child: Child): Promise<string> => {
    const begun = performance.now()
    const ready = await child.message<{ readonly url: string }>()
    if (ready === undefined) throw new Error(`The server did not start: ${await child.ended}\n${child.err}`)
    slowest = Math.max(slowest, performance.now() - begun)
    return ready.url
  }

  let server = spawn()
  try {
    const url = await up(server)
    port = new URL(url).port

    const scope = Scope.makeUnsafe()
    const clients = await Effect.runPromise(
      Scope.provide(Clients.make({ url, random, life: () => lives }), scope)
    )
    const numbers = Array.from({ length: orders }, (_, order) => order)
    const customers = Effect.runFork(Effect.forEach(numbers, clients.order, { concurrency, discard: true }))
    let over = false
    customers.addObserver(() => void (over = true))
    if (staged !== undefined) {
      staged.describeStage = () =>
        `${over ? "all orders have ended" : clients.describeUnfinished()}; ${lives} processes`
    }

    while (!over && kills + stops < maxKills) {
      const early = random() < 0.2
      const gentle = !early && random() < 0.25
      if (!early) {
        if (lives > 1) await up(server)
        if (stops + kills === 1) problems.push(...await intrude(file, outside))
      }
      await sleep(random() * (early ? 600 : life))
      if (over) break
      const begun = performance.now()
      const code = await server.kill(gentle ? "SIGTERM" : "SIGKILL")
      if (gentle) {
        stops++
        longest = Math.max(longest, performance.now() - begun)
        if (code !== 143) problems.push(`SIGTERM ended it with ${code}\n${server.err}`)
      } else kills++
      server = spawn()
    }
    const ended = await Effect.runPromise(Fiber.await(customers))
    if (Exit.isFailure(ended)) throw new Error(`The clients failed: ${ended.cause}\n${server.err}`)
    problems.push(...await Effect.runPromise(settled(clients)))
    await Effect.runPromise(Scope.close(scope, Exit.void))
    const code = await server.kill("SIGTERM")
    if (code !== 143) problems.push(`SIGTERM ended it with ${code}\n${server.err}`)
    const { acknowledged, cancelled, survived } = clients.reported
    if (acknowledged.size !== orders) problems.push(`${acknowledged.size} orders of ${orders} were acknowledged`)
    const summary = check(read(file), calls(outside), acknowledged, cancelled)
    return { ...summary, problems: [...problems, ...summary.problems], kills, stops, survived, slowest, longest }
  } finally {
    await server.kill("SIGKILL")
  }
}

/** Waits until no task is left, including tasks whose submission was lost with its response. */
export const settled = (clients: Clients.Clients): Effect.Effect<ReadonlyArray<string>, ClientError> =>
  Effect.gen(function*() {
    const adopted = new Set<string>()
    const end = Date.now() + patience
    while (true) {
      const live = yield* clients.live
      if (live.length === 0) return []
      if (Date.now() > end) return [`These did not end: ${JSON.stringify(live)}`]
      for (const { id } of live) {
        if (adopted.has(id)) continue
        adopted.add(id)
        yield* Effect.forkChild(clients.adopt(id))
      }
      yield* Effect.sleep("250 millis")
    }
  })

/** A second process on the same file is rejected, with the reason. */
const intrude = async (file: string, outside: string): Promise<ReadonlyArray<string>> => {
  const intruder = new Child("server.ts", ["--file", file, "--outside", outside])
  const code = await intruder.ended
  const [line = "", ...more] = intruder.err.split("\n")
  return code === 1 && more.join("") === "" && line.includes(`"${file}" is in use`)
    ? []
    : [`Another process on the same file ended with ${code}: ${intruder.err}`]
}

/** A report as a line. */
export const line = (report: Report): string =>
  [
    `${report.completed} completed, ${report.failed} failed, ${report.cancelled} cancelled`,
    `${report.kills} × SIGKILL, ${report.stops} × SIGTERM`,
    `${report.repeated} steps acted more than once`,
    `${report.survived} questions answered in a later life`,
    `slowest start ${Math.round(report.slowest)} ms`,
    `longest stop ${Math.round(report.longest)} ms`
  ].join("; ")
