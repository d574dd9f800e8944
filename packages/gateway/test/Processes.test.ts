/** A program with a proxy of child processes: which processes it has, and that none of them outlives it. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/NodeHttp"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { fixture, isGone, Journal, until } from "./children.ts"

const textOf = ({ content }: { readonly content: ReadonlyArray<unknown> }) =>
  (content[0] as { readonly text: string }).text

/** The arguments of the program. */
const program = (
  { path }: Journal,
  how: "stdio" | "http",
  whose: "shared" | "session",
  traits: ReadonlyArray<string> = [],
  proxies = 1
): ReadonlyArray<string> => [
  "--conditions=@skein/source",
  fixture("front.ts"),
  how,
  whose,
  `${proxies}`,
  path,
  ...traits
]

/** Starts the program on stdio, with a client. */
const onStdio = (args: ReadonlyArray<string>, options: Partial<Stdio.Options> = {}) =>
  Effect.gen(function*() {
    const connections: Array<Stdio.StdioConnection> = []
    const transport = Stdio.transport({ command: process.execPath, args, stderr: "ignore", ...options })
    const connect = Effect.tap(transport.connect, (connection) => Effect.sync(() => connections.push(connection)))
    const client = yield* Client.make({ ...transport, connect }, { reconnect: false })
    const [front] = connections
    return { client, front: front! }
  })

/** Starts the program without a client. It is killed with the scope. */
const start = (args: ReadonlyArray<string>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, args, { stdio: ["pipe", "pipe", "pipe"] })),
      (front) => Effect.sync(() => front.kill("SIGKILL"))
    ),
    (front) => {
      const exit = new Promise<number | string>((resolve) => {
        front.once("exit", (code, signal) => resolve(code ?? signal!))
      })
      const url = new Promise<string>((resolve, reject) => {
        let output = ""
        for (const stream of [front.stdout, front.stderr]) {
          stream.setEncoding("utf8").on("data", (text: string) => {
            const found = /http:\/\/\S+\/mcp/.exec(output += text)
            if (found !== null) resolve(found[0])
          })
        }
        void exit.then((status) => reject(new Error(`the program exited with ${status}:\n${output}`)))
      })
      url.catch(() => {})
      return {
        /** Waits for the address of a program over HTTP. */
        url: Effect.promise(() => url),
        exit: Effect.promise(() => exit),
        closeStdin: Effect.sync(() => front.stdin.end()),
        terminate: Effect.sync(() => front.kill("SIGTERM"))
      }
    }
  )

describe("perSession", () => {
  it.live("starts a child for each session, and ends it with the session", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const url = yield* (yield* start(program(journal, "http", "session", ["parent"]))).url
      const session = Effect.gen(function*() {
        const scope = yield* Scope.fork(yield* Effect.scope)
        const client = yield* Scope.provide(Client.make(Http.transport({ url }), { revisions: ["2025-11-25"] }), scope)
        const pid = Number(textOf(yield* client.callTool("pid")))
        return { client, pid, close: Scope.close(scope, Exit.void) }
      })
      const [one, two] = [yield* session, yield* session]
      expect(textOf(yield* one.client.callTool("pid"))).toBe(`${one.pid}`)
      // The first child lists.
      const [listing] = journal.pids("started")
      expect(journal.pids("started")).toEqual([listing, one.pid, two.pid])
      const [, grandchild] = journal.pids("grandchild")
      yield* one.close
      yield* until(() => isGone(one.pid) && isGone(grandchild!))
      expect(textOf(yield* two.client.callTool("pid"))).toBe(`${two.pid}`)
      expect(isGone(listing!)).toBe(false)
      yield* two.close
      yield* until(() => isGone(two.pid))
    }), 120_000)

  it.live(
    "starts another child for a session whose child was killed, and disturbs no other session",
    () =>
      Effect.gen(function*() {
        const journal = yield* Journal.make
        const url = yield* (yield* start(program(journal, "http", "session"))).url
        const session = Client.make(Http.transport({ url }), { revisions: ["2025-11-25"] })
        const [one, two] = [yield* session, yield* session]
        const pids = [Number(textOf(yield* one.callTool("pid"))), Number(textOf(yield* two.callTool("pid")))] as const
        const call = yield* Effect.forkChild(Effect.flip(one.callTool("slow")), { startImmediately: true })
        yield* journal.until("slow began")
        process.kill(pids[0], "SIGKILL")
        expect(yield* Fiber.join(call)).toMatchObject({
          reason: { error: { code: -32603, data: { reason: "RemoteUnavailable" } } }
        })
        expect(pids).not.toContain(Number(textOf(yield* one.callTool("pid"))))
        expect(textOf(yield* two.callTool("pid"))).toBe(`${pids[1]}`)
        expect(journal.pids("started")).toHaveLength(4)
      }),
    120_000
  )

  it.live("ends the children of all sessions on SIGTERM, with calls in progress", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const front = yield* start(program(journal, "http", "session", ["parent"]))
      const url = yield* front.url
      for (let session = 0; session < 3; session++) {
        const client = yield* Client.make(Http.transport({ url }), { revisions: ["2025-11-25"], reconnect: false })
        yield* Effect.forkScoped(Effect.exit(client.callTool("slow")), { startImmediately: true })
      }
      yield* until(() => journal.count("slow began") === 3)
      expect(journal.all).toHaveLength(8)
      yield* front.terminate
      expect(yield* front.exit).toBe(143)
      yield* until(() => journal.all.every(isGone))
    }), 120_000)
})

describe("a program whose child does not answer", () => {
  it.live("ends the child on SIGTERM", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const front = yield* start(program(journal, "stdio", "shared", ["mute"]))
      yield* until(() => journal.pids("started").length === 1)
      yield* front.terminate
      expect(yield* front.exit).toBe(143)
      expect(journal.all.every(isGone)).toBe(true)
    }), 120_000)

  it.live("starts after readyTimeout, and ends the child when stdin closes", () =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const front = yield* start(program(journal, "stdio", "shared", ["mute"]))
      yield* until(() => journal.pids("started").length === 1)
      yield* front.closeStdin
      expect(yield* front.exit).toBe(0)
      expect(journal.all.every(isGone)).toBe(true)
    }), 120_000)
})

describe.each(["shared", "session"] as const)("the end of a program with children (%s)", (whose) => {
  /** A program whose child and grandchild have started, with a call in progress. */
  const busy = (traits: ReadonlyArray<string>, options?: Partial<Stdio.Options>, proxies?: number) =>
    Effect.gen(function*() {
      const journal = yield* Journal.make
      const scope = yield* Scope.fork(yield* Effect.scope)
      const args = program(journal, "stdio", whose, traits, proxies)
      const { client, front } = yield* Scope.provide(onStdio(args, options), scope)
      yield* Effect.forkScoped(Effect.exit(client.callTool("slow")), { startImmediately: true })
      yield* journal.until("slow began")
      expect(journal.pids("started")).toHaveLength((whose === "shared" ? 1 : 2) + (proxies ?? 1) - 1)
      expect(journal.all.filter(isGone)).toEqual([])
      return { journal, front, close: Scope.close(scope, Exit.void) }
    })

  it.live("ends the children and their processes when stdin closes", () =>
    Effect.gen(function*() {
      const { close, front, journal } = yield* busy(["parent"], { shutdownTimeout: "1 minute" })
      yield* close
      expect(yield* front.exited).toEqual({ code: 0, signal: undefined })
      expect(journal.all.filter((pid) => !isGone(pid))).toEqual([])
    }), 120_000)

  it.live(
    "ends the children when the client sends SIGTERM, because a call delays the exit",
    () =>
      Effect.gen(function*() {
        const env = { FRONT_SHUTDOWN_TIMEOUT: "600000" }
        const { close, front, journal } = yield* busy([], { env, shutdownTimeout: "10 seconds" })
        yield* close
        expect(yield* front.exited).toEqual({ code: 143, signal: undefined })
        yield* until(() => journal.all.every(isGone))
      }),
    120_000
  )

  it.live("ends the children and their processes on SIGTERM, and interrupts calls", () =>
    Effect.gen(function*() {
      const { front, journal } = yield* busy(["parent"])
      process.kill(front.pid, "SIGTERM")
      expect(yield* front.exited).toEqual({ code: 143, signal: undefined })
      yield* until(() => journal.all.every(isGone))
      for (const pid of journal.pids("started")) expect(journal.count(`exited ${pid}`)).toBe(1)
    }), 120_000)

  it.live(
    "kills children that ignore the end of stdin and SIGTERM, all at once, before it exits",
    () =>
      Effect.gen(function*() {
        const { front, journal } = yield* busy(["parent", "stubborn"], {}, 3)
        process.kill(front.pid, "SIGTERM")
        expect(yield* front.exited).toEqual({ code: 143, signal: undefined })
        yield* until(() => journal.all.every(isGone))
      }),
    120_000
  )

  it.live("ends the stdin of its children when it is killed, and they exit", () =>
    Effect.gen(function*() {
      const { front, journal } = yield* busy([])
      process.kill(front.pid, "SIGKILL")
      yield* until(() => journal.all.every(isGone))
    }), 120_000)
})
