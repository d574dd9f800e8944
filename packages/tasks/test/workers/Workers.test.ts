/** Tasks in one SQLite file of a server with two workers, each of which is a process. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Lines } from "../../../server/test/stdio/Child.ts"

const start = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-workers-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const program = fileURLToPath(new URL("server.ts", import.meta.url))
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(
        process.execPath,
        ["--conditions=@skein/source", program, JSON.stringify({ port: 0, workers: 2, folder })],
        { stdio: ["ignore", "ignore", "pipe"] }
      )
    ),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )
  const stderr = new Lines(child.stderr)
  const line = yield* Effect.promise(() => stderr.until("Listening on"))
  const url = /http:\S+/.exec(line)![0]
  /** The steps that ran, with the process of each. */
  const steps = (): ReadonlyArray<readonly [pid: number, step: string]> => {
    try {
      return readFileSync(join(folder, "steps"), "utf8").trim().split("\n").map((line) => {
        const space = line.indexOf(" ")
        return [Number(line.slice(0, space)), line.slice(space + 1)]
      })
    } catch {
      return []
    }
  }
  const until = (done: () => boolean) =>
    Effect.repeat(Effect.delay(Effect.sync(done), "20 millis"), { until: (is) => is })
  return {
    folder,
    stderr,
    steps,
    until,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    /** Lets the second step of a task end. */
    release: (name: string) => Effect.sync(() => writeFileSync(join(folder, name), "")),
    client: Effect.provide(
      Client.make(ClientHttp.transport({ url })),
      Elicitation.layer({ form: () => Effect.succeed(Elicitation.accept({ cakes: 7 })) })
    )
  }
})

const textOf = ({ content }: { readonly content: ReadonlyArray<object> }): unknown =>
  (content[0] as { text?: string }).text

const names = (count: number) => Array.from({ length: count }, (_, n) => `cake ${n}`)

describe("tasks in a SQLite file of several workers", { timeout: 120_000 }, () => {
  it.live("run in all of them, and clients follow them at any", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start
      const client = yield* server.client
      const tasks = yield* Effect.forEach(names(12), (name) => client.startTask("bake", { name }), {
        concurrency: "unbounded"
      })
      yield* server.until(() => server.steps().length === 24)
      expect(new Set(server.steps().map(([pid]) => pid)).size).toBe(2)
      yield* Effect.forEach(names(12), server.release)
      const results = yield* Effect.forEach(tasks, ({ result }) => result, { concurrency: "unbounded" })
      expect(results.map(textOf)).toEqual(names(12).map((name) => `${name} baked`))
      expect(new Set(server.steps().map(([, step]) => step)).size).toBe(24)
      const order = yield* client.callTool("order", {})
      expect(textOf(order)).toBe("7 ordered")
    })))

  it.live("are continued by another worker when one is killed, which repeats no finished step", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start
      const client = yield* server.client
      const tasks = yield* Effect.forEach(names(8), (name) => client.startTask("bake", { name }))
      yield* server.until(() => server.steps().length === 16)
      const [[killed]] = server.steps() as readonly [readonly [number, string]]
      const lost = server.steps().filter(([pid, step]) => pid === killed && step.endsWith("second"))
      process.kill(killed, "SIGKILL")
      // Each task of the killed worker repeats the step that it was in, at another one.
      yield* server.until(() => server.steps().length === 16 + lost.length)
      yield* Effect.forEach(names(8), server.release)
      const results = yield* Effect.forEach(tasks, ({ result }) => result, { concurrency: "unbounded" })
      expect(results.map(textOf)).toEqual(names(8).map((name) => `${name} baked`))
      const again = server.steps().slice(16)
      expect(again.map(([, step]) => step).sort()).toEqual(lost.map(([, step]) => step).sort())
      expect(again.map(([pid]) => pid)).not.toContain(killed)
    })))

  it.live("go on when the workers are replaced", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start
      const client = yield* server.client
      const tasks = yield* Effect.forEach(names(4), (name) => client.startTask("bake", { name }))
      yield* server.until(() => server.steps().length === 8)
      const before = new Set(server.steps().map(([pid]) => pid))
      server.kill("SIGHUP")
      yield* Effect.promise(() => server.stderr.until("Replaced the workers"))
      yield* Effect.forEach(names(4), server.release)
      const results = yield* Effect.forEach(tasks, ({ result }) => result, { concurrency: "unbounded" })
      expect(results.map(textOf)).toEqual(names(4).map((name) => `${name} baked`))
      const firsts = server.steps().filter(([, step]) => step.endsWith("first"))
      expect(firsts).toHaveLength(4)
      expect(firsts.every(([pid]) => before.has(pid))).toBe(true)
    })))

  it.live("wait for each other's transactional steps, whose changes are complete", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start
      const client = yield* server.client
      const results = yield* Effect.forEach(names(20), () => client.callTool("count", {}), { concurrency: "unbounded" })
      expect(results.map((result) => Number(textOf(result))).sort((one, other) => one - other)).toEqual(
        names(20).map((_, n) => n + 1)
      )
      expect(server.stderr.all.filter((line) => line.includes("lost its tasks"))).toEqual([])
    })))

  it.live("are changed by another program, and refuse a process that owns the file", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* start
      const client = yield* server.client
      const filename = join(server.folder, "tasks.db")
      const task = yield* client.startTask("bake", { name: "cake" })
      yield* server.until(() => server.steps().length === 2)
      const refused = yield* Effect.flip(Layer.build(SqliteTasks.layer({ filename })))
      expect(refused.reason._tag).toBe("FileLocked")
      yield* Effect.provide(
        Effect.gen(function*() {
          const admin = yield* TaskAdmin
          expect((yield* admin.workers).map(({ host }) => /worker \d/.exec(host)?.[0]).sort()).toEqual([
            "worker 1",
            "worker 2"
          ])
          if (task._tag === "RemoteTask") expect(yield* admin.cancel(task.id)).toBe(true)
        }),
        SqliteTasks.layerAdmin({ filename })
      )
      const error = yield* Effect.flip(task.result)
      expect(String((error as { readonly reason: { readonly _tag: string } }).reason._tag)).toBe("TaskCancelled")
    })))
})
