/** A server of several processes as operators see it: its readiness, metrics and logs. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as kit from "./kit.ts"
import { type Process, run } from "./process/run.ts"
import { until } from "./session/kit.ts"

/** A server of two workers, and the files that control them. */
const start = Effect.fnUntraced(function*(
  options: object = {},
  files: ReadonlyArray<string> = [],
  env: Readonly<Record<string, string>> = {}
) {
  const folder = yield* Effect.acquireRelease(
    Effect.promise(() => mkdtemp(join(tmpdir(), "skein-workers-"))),
    (folder) => Effect.promise(() => rm(folder, { recursive: true }))
  )
  const create = (file: string) => Effect.promise(() => writeFile(join(folder, file), ""))
  const remove = (file: string) => Effect.promise(() => rm(join(folder, file)))
  yield* Effect.forEach(files, create)
  const server = yield* run("workers.ts", { workers: { count: 2, allowLocal: true }, folder, ...options }, env)
  if (files.length === 0) yield* Effect.promise(() => server.stderr.until("(workers: 2)"))
  return { ...server, create, remove }
})

const get = (server: Process, path: string) => kit.send(server, { method: "GET", path })
const ready = (server: Process) => Effect.map(get(server, "/readyz"), ({ json, status }) => [status, json?.status])

/** Probes until the answer is this one. */
const untilReady = (server: Process, expected: ReadonlyArray<unknown>) =>
  Effect.repeat(Effect.delay(ready(server), "20 millis"), { until: ([status]) => status === expected[0] }).pipe(
    Effect.map((found) => expect(found).toEqual(expected))
  )

/** Probes, each on a connection of its own: the workers take turns. */
const probes = (server: Process, count: number) => Effect.forEach(Array.from({ length: count }), () => ready(server))

const draining = [503, "draining"]
const unavailable = [503, "unavailable"]
const ok = [200, "ok"]

const call = (server: Process, name: string) =>
  Effect.map(kit.send(server, kit.modern("tools/call", { name, arguments: {} })), ({ json, messages, status }) => {
    expect(status).toBe(200)
    return (json ?? messages.at(-1)).result.content[0].text as string
  })

/** The calls of a tool that a scrape has counted. */
const counted = (text: string, tool: string): number =>
  text.split("\n").filter((line) => line.startsWith("mcp_server_requests{") && line.includes(`"${tool}"`))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0)

describe("the readiness of workers", () => {
  it.live("begins when all have started", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({}, ["slow"])
      expect(yield* probes(server, 3)).toEqual([unavailable, unavailable, unavailable])
      expect((yield* get(server, "/livez")).status).toBe(200)
      yield* server.create("go")
      yield* untilReady(server, ok)
    })))

  it.live("goes on while they are replaced, and after a kill", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({ drainDelay: 300 })
      const found: Array<unknown> = []
      // A connection to a worker that stops may be closed before its request has arrived: such a probe is repeated.
      const probe = Effect.ignoreCause(Effect.map(ready(server), (status) => void found.push(status)))
      const probing = yield* Effect.forkChild(Effect.forever(probe))
      server.kill("SIGHUP")
      yield* Effect.promise(() => server.stderr.until("Replaced the workers"))
      const replaced = found.length
      yield* until(() => found.length > replaced)
      yield* Fiber.interrupt(probing)
      expect([...new Set(found.map(String))]).toEqual([String(ok)])
      process.kill(Number(yield* call(server, "pid")), "SIGKILL")
      yield* Effect.promise(() => server.stderr.until("another one is started"))
      expect(yield* probes(server, 3)).toEqual([ok, ok, ok])
    })))

  it.live("ends at all of them on SIGTERM, which still accept requests for drainDelay", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start({ drainDelay: 20_000 })
      expect(yield* probes(server, 2)).toEqual([ok, ok])
      server.kill("SIGTERM")
      yield* untilReady(server, draining)
      expect(yield* probes(server, 4)).toEqual([draining, draining, draining, draining])
      yield* call(server, "pid")
    })))

  it.live("needs the check of each worker, for at most a second", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      for (const file of ["2.unready", "2.stopped"]) {
        yield* server.create(file)
        expect(yield* probes(server, 2)).toEqual([unavailable, unavailable])
        yield* server.remove(file)
        yield* untilReady(server, ok)
      }
      const lines = server.stderr.all.filter((line) => line.includes("Health: the server is not ready"))
      expect(lines).toHaveLength(2)
    })))
})

describe("the metrics of workers", () => {
  const scrape = (server: Process) => Effect.map(get(server, "/metrics"), ({ status, text }) => [status, text] as const)

  it.live("are those of all at each one, those of replaced and killed workers included", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start()
      const found = yield* Effect.forEach(Array.from({ length: 6 }), () => call(server, "pid"))
      expect(new Set(found).size).toBe(2)
      for (let n = 0; n < 2; n++) {
        const [status, text] = yield* scrape(server)
        expect([status, counted(text, "pid")]).toEqual([200, 6])
        for (const worker of [1, 2]) {
          expect(text).toContain(`\ntest_worker{worker="${worker}"} ${worker}\n`)
          expect(text).toMatch(new RegExp(`^mcp_server_active_requests\\{.*worker="${worker}"\\} 0$`, "m"))
        }
      }
      // A stopped worker does not answer, or gets the connection: the other one counts it as before.
      const pid = Number(found[0])
      process.kill(pid, "SIGSTOP")
      const [, text] = yield* Effect.raceFirst(scrape(server), scrape(server))
      expect(counted(text, "pid")).toBe(6)
      process.kill(pid, "SIGKILL")
      yield* Effect.promise(() => server.stderr.until("another one is started"))
      expect(counted((yield* scrape(server))[1], "pid")).toBe(6)
      yield* Effect.forEach(Array.from({ length: 4 }), () => call(server, "pid"))
      server.kill("SIGHUP")
      yield* Effect.promise(() => server.stderr.until("Replaced the workers"))
      expect(counted((yield* scrape(server))[1], "pid")).toBe(10)
    })))
})

describe("the telemetry of workers", () => {
  it.live("has a service.instance.id for each, also with one of the server", () =>
    Effect.scoped(Effect.gen(function*() {
      const ids = Effect.fnUntraced(function*(env: Readonly<Record<string, string>>) {
        const server = yield* start({}, [], { OTEL_RESOURCE_ATTRIBUTES: "", ...env })
        const found = yield* Effect.forEach(Array.from({ length: 4 }), () => get(server, "/resource"))
        const all: ReadonlyArray<ReadonlyArray<kit.Json>> = found.map(({ json }) => json.attributes)
        const of = (key: string) => [
          ...new Set(all.map((attributes) => attributes.find((one) => one.key === key)?.value.stringValue))
        ]
        return { ids: of("service.instance.id").toSorted(), places: of("place") }
      })
      const { ids: own } = yield* ids({})
      expect(own).toEqual([expect.stringMatching(/^[\w-]+-1$/), expect.stringMatching(/^[\w-]+-2$/)])
      expect(yield* ids({ OTEL_RESOURCE_ATTRIBUTES: "place=a%2Cb,service.instance.id=pod" }))
        .toEqual({ ids: ["pod-1", "pod-2"], places: ["a,b"] })
    })))
})

describe("the logs of workers", () => {
  const numberOf = {
    pretty: (line: string, lines: ReadonlyArray<string>) =>
      Number(/worker: (\d)/.exec([line, ...lines].join("\n"))?.[1]),
    json: (line: string) => JSON.parse(line).annotations.worker as number,
    logfmt: (line: string) => Number(/ worker=(\d)/.exec(line)?.[1])
  }
  for (const [logFormat, read] of Object.entries(numberOf)) {
    it.live(`have the number of the worker in each line: ${logFormat}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* start({ logFormat })
        yield* Effect.forEach(Array.from({ length: 4 }), () => call(server, "slow"))
        const { all } = server.stderr
        const own = all.flatMap((line, at) => line.includes("half way") ? [read(line, all.slice(at + 1, at + 3))] : [])
        expect([...new Set(own)].sort()).toEqual([1, 2])
      })))
  }
})
