/**
 * A server that misbehaves on purpose, for the tests of clients: over HTTP in this process, or as a program over stdio.
 *
 * It speaks every revision by hand, so that nothing of what it does wrong is prevented by a library, and it counts what reached it,
 * so that a test can say that nothing was done twice. What it does wrong, and when, is a {@link Script.Script}.
 *
 * Its tools take a `key`, by which a test knows a call again: `echo` gives it back; `add` adds `a` and `b`; `progress` reports
 * progress `n` times; `ask` asks the user for a word, and gives back the key and what was answered; `slow` takes `ms` milliseconds.
 *
 * ```ts
 * const rude = yield* RudeServer.http({ faults: [Script.rule("call", Script.cut(100))] })
 * const client = yield* Client.make(Http.transport({ url: rude.url }))
 * yield* client.callTool("echo", { key: "once" })
 * expect(rude.times("once")).toBe(1)
 * ```
 */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Call } from "./internal/mind.ts"
import { RudeEndpoint } from "./internal/nodeHttp.ts"
import type { Script } from "./Script.ts"

export type { Call }

/** A rude server over HTTP. The counts are those of now. */
export interface RudeHttp {
  /** Of its endpoint. */
  readonly url: string
  /** HTTP requests that came. */
  readonly requests: number
  /** GETs that came, and those of them that take a stream up again (`Last-Event-ID`). */
  readonly streams: number
  readonly resumed: number
  /** Sessions that were opened. */
  readonly sessions: number
  /** Connections that were accepted, and those that are open. */
  readonly connections: number
  readonly open: number
  /** How often the port has closed and opened again. */
  readonly restarts: number
  /** The calls of tools that were carried out. */
  readonly calls: ReadonlyArray<Call>
  /** How often the call with that key was carried out. */
  readonly times: (key: string) => number
  /** Cuts each connection: with an RST, or in order. */
  readonly cut: (how: "reset" | "end") => Effect.Effect<void>
  /** Forgets all sessions: their next requests are answered with 404. */
  readonly forget: Effect.Effect<void>
  /** Closes the port with each connection, and forgets all sessions. */
  readonly stop: Effect.Effect<void>
  /** Opens the port again, after `stop`. It is the same one. */
  readonly start: Effect.Effect<void>
  /** Both. Does nothing while it is under way. */
  readonly restart: Effect.Effect<void>
  /** Sends a notification on the stream of each session that belongs to no request. */
  readonly notify: (method: string, params?: object) => Effect.Effect<void>
}

/**
 * Listens on a free port of 127.0.0.1 for as long as the scope. What waits there waits on the clock of the fiber that starts it:
 * under a `TestClock` it is the test that lets time pass.
 */
export const http = (script: Script): Effect.Effect<RudeHttp, never, Scope.Scope> =>
  Effect.gen(function*() {
    const fork = yield* FiberSet.makeRuntime<never, void, never>()
    const rude = new RudeEndpoint(script, fork)
    yield* Effect.acquireRelease(rude.start, () => rude.stop)
    const { endpoint, heard } = rude
    return {
      url: `http://127.0.0.1:${rude.port}/mcp`,
      get requests() {
        return heard.requests
      },
      get streams() {
        return heard.streams
      },
      get resumed() {
        return heard.resumed
      },
      get sessions() {
        return heard.sessions
      },
      get connections() {
        return endpoint.connections
      },
      get open() {
        return endpoint.open
      },
      get restarts() {
        return heard.restarts
      },
      get calls() {
        return heard.calls
      },
      times: (key) => timesOf(heard.calls, key),
      cut: (how) => Effect.sync(() => endpoint.cut(how === "reset")),
      forget: Effect.sync(() => rude.forget()),
      stop: rude.stop,
      start: rude.start,
      restart: rude.restart,
      notify: (method, params = {}) => Effect.sync(() => rude.announce({ jsonrpc: "2.0", method, params }))
    }
  })

/** A rude server that can be started as a process, any number of times. */
export interface RudeProgram {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The calls of tools that its processes have carried out. */
  readonly calls: Effect.Effect<ReadonlyArray<Call>>
  /** How often the call with that key was carried out. */
  readonly times: (key: string) => Effect.Effect<number>
  /** How often it was started. */
  readonly starts: Effect.Effect<number>
}

/**
 * A program that is rude over stdio. Each process begins the script anew. The script travels as an argument, and what reached the
 * processes is written to a file that goes away with the scope.
 */
export const stdio = (script: Script): Effect.Effect<RudeProgram, never, Scope.Scope> =>
  Effect.gen(function*() {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-rude-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
    )
    const journal = join(folder, "journal")
    // Beside this module, and of the same kind: a source, or what was built of it.
    const program = import.meta.url.replace(/RudeServer(\.\w+)$/, "internal/stdioMain$1")
    const lines = Effect.sync(() => read(journal))
    const calls = Effect.map(lines, (all) => all.flatMap((line) => "tool" in line ? [line] : []))
    return {
      command: process.execPath,
      args: [fileURLToPath(program), JSON.stringify(script), journal],
      calls,
      times: (key) => Effect.map(calls, (all) => timesOf(all, key)),
      starts: Effect.map(lines, (all) => all.filter((line) => "pid" in line).length)
    }
  })

const timesOf = (calls: ReadonlyArray<Call>, key: string): number => calls.filter((call) => call.key === key).length

const read = (journal: string): ReadonlyArray<Call | { readonly pid: number }> => {
  try {
    return readFileSync(journal, "utf8").split("\n").flatMap((line) => line === "" ? [] : [JSON.parse(line)])
  } catch {
    // Nobody has started it.
    return []
  }
}
