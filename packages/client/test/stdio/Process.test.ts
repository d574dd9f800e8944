import * as Stdio from "@skein/client/Stdio"
import { describe, expect, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { End } from "@skein/runtime/Connection"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { bounded } from "../support/fixedBounds.ts"

const fixture = (name: string) => fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url))
const server = fixture("server.ts")
const short = { shutdownTimeout: 100 }
const byDefault = { shutdownTimeout: undefined }

/** Returns true if a process does not exist, or is a zombie that its parent has not reaped. */
const gone = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return process.platform === "linux" && /\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch {
    return true
  }
}

interface Observed {
  readonly connection: Stdio.StdioConnection
  readonly messages: Array<JsonRpc.Inbound>
  readonly ends: Array<End>
  /** The first notification with this method, or the response with this id. */
  readonly until: (key: JsonRpc.Id) => Effect.Effect<JsonRpc.Inbound>
  /** Succeeds with the result of `find` as soon as it is defined after a message. */
  readonly when: <A>(find: () => A | undefined) => Effect.Effect<A>
  readonly ended: Effect.Effect<End>
  readonly call: (id: number, method?: string) => boolean
}

const observe = (connection: Stdio.StdioConnection): Observed => {
  const messages: Array<JsonRpc.Inbound> = []
  const ends: Array<End> = []
  const waiters = new Set<() => void>()
  const ended = Deferred.makeUnsafe<End>()
  connection.open({
    message: (message) => {
      messages.push(message)
      for (const waiter of [...waiters]) waiter()
    },
    end: (end) => {
      ends.push(end)
      Deferred.doneUnsafe(ended, Effect.succeed(end))
    }
  })
  const when = <A>(find: () => A | undefined) =>
    Effect.callback<A>((resume) => {
      const look = () => {
        const found = find()
        if (found !== undefined) resume(Effect.succeed(found))
      }
      waiters.add(look)
      look()
      return Effect.sync(() => waiters.delete(look))
    })
  return {
    connection,
    messages,
    ends,
    when,
    ended: Deferred.await(ended),
    call: (id, method = "echo") => connection.send({ _tag: "Request", id, method, params: undefined }),
    until: (key) =>
      when(() =>
        messages.find((message) =>
          message._tag === "Notification" ? message.method === key : "id" in message && message.id === key
        )
      )
  }
}

/** Waits turns of the event loop, in which available data is read. */
const turns = (count: number) =>
  Effect.promise(async () => {
    for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve))
  })

const options = (
  mode: string,
  more: Partial<Stdio.Options> & { readonly with?: ReadonlyArray<string> } = {}
): Stdio.Options => ({
  command: process.execPath,
  args: [server, mode, ...more.with ?? []],
  stderr: "capture",
  ...short,
  ...more
})

const open = (...args: Parameters<typeof options>) => Effect.map(Stdio.connect(options(...args)), observe)

const params = (message: JsonRpc.Inbound) => (message as JsonRpc.Notification).params as Record<string, unknown>

const lost = (end: End) => {
  expect(end._tag).toBe("Lost")
  return (end as Extract<End, { _tag: "Lost" }>).cause
}

describe("closing a server", () => {
  it.live("2025-11-25 · SHOULD initiate shutdown by first, closing the input stream to the child process", () =>
    Effect.gen(function*() {
      const scope = Scope.makeUnsafe()
      const { call, connection, ends, until } = yield* Scope.provide(open("echo", { shutdownTimeout: 60_000 }), scope)
      expect(call(1)).toBe(true)
      yield* until(1)
      yield* Scope.close(scope, Exit.void)
      expect(yield* connection.exited).toEqual({ code: 0, signal: undefined })
      expect(ends).toEqual([{ _tag: "ClosedByUs" }])
      expect(gone(connection.pid)).toBe(true)
    }))

  it.effect("2025-11-25 · SIGTERM if the server does not exit within a reasonable time", () =>
    Effect.gen(function*() {
      const { call, connection, until } = yield* open("polite")
      call(1)
      yield* until(1)
      const closing = yield* Effect.forkChild(connection.close, { startImmediately: true })
      yield* TestClock.adjust(100)
      yield* Fiber.join(closing)
      expect(yield* connection.exited).toEqual({ code: 0, signal: undefined })
      expect(connection.stderr()).toBe("eof\nterm\n")
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · SIGKILL if the server does not exit within a reasonable time after SIGTERM", () =>
    Effect.gen(function*() {
      const { call, connection, until } = yield* open("stubborn")
      call(1)
      yield* until(1)
      yield* connection.close
      expect(yield* connection.exited).toEqual({ code: undefined, signal: "SIGKILL" })
      expect(connection.stderr()).toBe("eof\nterm\n")
      yield* connection.close
    }).pipe(Effect.scoped))

  it.effect("waits 2 seconds after it closes stdin, and 2 after SIGTERM, by default", () =>
    Effect.gen(function*() {
      let stderr = ""
      const received = Deferred.makeUnsafe<void>()
      const { call, connection, until } = yield* open("stubborn", {
        ...byDefault,
        stderr: (text) => {
          stderr += text
          if (stderr.includes("term")) Deferred.doneUnsafe(received, Effect.void)
        }
      })
      call(1)
      yield* until(1)
      const closing = yield* Effect.forkChild(connection.close, { startImmediately: true })
      yield* TestClock.adjust(1999)
      expect(stderr).not.toContain("term")
      yield* TestClock.adjust(1)
      yield* Deferred.await(received)
      yield* TestClock.adjust(1999)
      expect(gone(connection.pid)).toBe(false)
      yield* TestClock.adjust(1)
      expect(yield* connection.exited).toEqual({ code: undefined, signal: "SIGKILL" })
      yield* Fiber.join(closing)
    }).pipe(Effect.scoped))

  it.live("ends a server behind a shell too", () =>
    Effect.gen(function*() {
      const command = `${JSON.stringify(process.execPath)} ${JSON.stringify(server)} stubborn; true`
      const { call, connection, until } = yield* open("", { command: "sh", args: ["-c", command] })
      call(1)
      const answer = (yield* until(1)) as JsonRpc.Success
      const { pid: child } = answer.result as unknown as { pid: number }
      expect(child).not.toBe(connection.pid)
      expect(gone(child)).toBe(false)
      yield* connection.close
      expect([gone(connection.pid), gone(child)]).toEqual([true, true])
    }).pipe(Effect.scoped))

  it.live("ends a grandchild that ignores SIGTERM, also if the server itself exits", () =>
    Effect.gen(function*() {
      const { connection, until } = yield* open("parent")
      const { pid } = params(yield* until("grandchild")) as { pid: number }
      yield* connection.close
      expect(yield* connection.exited).toEqual({ code: 0, signal: undefined })
      expect(gone(pid)).toBe(true)
    }).pipe(Effect.scoped))

  it.live("ends the rest of the process group when the server dies", () =>
    Effect.gen(function*() {
      const { call, connection, ended, until } = yield* open("parent", { with: ["3", "hold"] })
      const { pid } = params(yield* until("grandchild")) as { pid: number }
      call(1, "exit")
      const cause = lost(yield* ended).cause as Stdio.ServerExited
      expect([cause.pid, cause.code]).toEqual([connection.pid, 3])
      while (!gone(pid)) yield* turns(10)
    }).pipe(Effect.scoped))
})

describe("a server that exits", () => {
  it.live("ends with Lost, the exit code and the last part of its stderr", () =>
    Effect.gen(function*() {
      const { call, connection, ended, ends } = yield* bounded({ maxStderrChars: 15 }, open("mortal", { with: ["7"] }))
      call(1, "exit")
      const error = lost(yield* ended)
      expect(error.reason._tag).toBe("ConnectionLost")
      expect(error.message).toBe("The server exited with code 7; the end of its stderr: old last words")
      expect(error.cause).toBeInstanceOf(Stdio.ServerExited)
      expect(error.cause).toMatchObject({ code: 7, signal: undefined, pid: connection.pid, stderr: "old last words\n" })
      expect(connection.send({ _tag: "Notification", method: "late", params: undefined })).toBe(true)
      yield* connection.drained
      yield* connection.close
      expect(ends.length).toBe(1)
    }).pipe(Effect.scoped))

  const messageOf = (stderr: string): string =>
    new Stdio.ServerExited({ pid: 1, code: 1, signal: undefined, stderr }).message.split("stderr: ")[1]!

  it("quotes stderr without colors", () => {
    const frame = Array.from("╭─[ server.ts:3:5 ]", (character) => `\u001b[38;5;246m${character}\u001b[0m`).join("")
    expect(messageOf(`SyntaxError\r\n${frame.repeat(3)}\u001b[2J`)).toBe(
      "SyntaxError\n╭─[ server.ts:3:5 ]╭─[ server.ts:3:5 ]╭─[ server.ts:3:5 ]\\u{1b}[2J"
    )
  })

  it("quotes the message of an error above a long stack, and whole lines of other output", () => {
    const frames = Array.from({ length: 30 }, (_, at) => `    at work (file:///home/ada/server.ts:${at + 10}:7)`)
    const stack = ["Error: DATABASE_URL is missing", ...frames].join("\n")
    expect(messageOf(`${"listening\n".repeat(200)}${stack}\n`).split("\n").slice(-3)).toEqual([
      "listening",
      "Error: DATABASE_URL is missing",
      "    at work (file:///home/ada/server.ts:10:7)"
    ])
    const lines = messageOf("0123456789\n".repeat(200)).split("\n")
    expect([lines.length, new Set(lines)]).toEqual([93, new Set(["0123456789"])])
  })

  it("quotes the beginning of a long line", () => {
    expect(messageOf(`server.ts:1:9 ${"x".repeat(5_000)}\nunexpected x`)).toBe(
      `server.ts:1:9 ${"x".repeat(242)}…\nunexpected x`
    )
  })

  it.live("keeps 8 Ki characters of stderr by default", () =>
    Effect.gen(function*() {
      const { call, connection, ended } = yield* open("mortal", { with: ["7"] })
      call(1, "exit")
      yield* ended
      expect(connection.stderr().length).toBe(8 * 1024)
    }).pipe(Effect.scoped))

  for (
    const [name, stderr] of [["capture", "capture"], ["ignore", "ignore"], ["a function", () => {}]] as ReadonlyArray<
      readonly [string, Stdio.Options["stderr"]]
    >
  ) {
    it.live(`drains the stderr of a server that writes more than a pipe holds: ${name}`, () =>
      Effect.gen(function*() {
        const { call, until } = yield* open("loud", { stderr })
        for (const id of [1, 2, 3]) {
          call(id)
          yield* until(id)
        }
      }).pipe(Effect.scoped))
  }

  it.live("has no stderr output with `ignore`", () =>
    Effect.gen(function*() {
      const { call, connection, ended } = yield* open("mortal", { with: ["7"], stderr: "ignore" })
      call(1, "exit")
      expect(lost(yield* ended).message).toBe("The server exited with code 7")
      expect(connection.stderr()).toBe("")
    }).pipe(Effect.scoped))

  it.live("names the place of its stderr output with `inherit`", () =>
    Effect.gen(function*() {
      const { ended } = yield* open("brief", { with: ["4"], stderr: "inherit" })
      expect(lost(yield* ended).message).toBe(
        "The server exited with code 4; its messages are on the stderr of this process"
      )
    }).pipe(Effect.scoped))

  it.live("has its whole stderr passed to the configured function, and the last part kept", () =>
    Effect.gen(function*() {
      let received = ""
      const { call, connection, ended } = yield* bounded(
        { maxStderrChars: 0 },
        open("mortal", { with: ["7"], stderr: (text) => void (received += text) })
      )
      call(1, "exit")
      yield* ended
      expect(received).toBe(`${"old ".repeat(5_000)}last words\n`)
      expect(connection.stderr()).toBe("")
    }).pipe(Effect.scoped))

  it.live("ends with Lost and the signal when it is killed", () =>
    Effect.gen(function*() {
      const { ended } = yield* open("suicide")
      expect(lost(yield* ended).message).toBe("The server was killed by SIGKILL")
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · MAY initiate shutdown by closing its output stream to the client and exiting: ClosedByPeer", () =>
    Effect.gen(function*() {
      const { ended, messages } = yield* open("brief", { with: ["0"] })
      expect(yield* ended).toEqual({ _tag: "ClosedByPeer" })
      expect(messages.map((message) => (message as JsonRpc.Notification).method)).toEqual(["m0", "m1", "m2"])
    }).pipe(Effect.scoped))

  it.effect("delivers its last messages, even to a receiver that opens late", () =>
    Effect.gen(function*() {
      const connection = yield* Stdio.connect(options("brief", { with: ["4"], ...byDefault }))
      yield* connection.exited
      yield* TestClock.adjust(500)
      const { ended, messages } = observe(connection)
      yield* turns(50)
      yield* TestClock.adjust(500)
      expect(lost(yield* ended).message).toBe("The server exited with code 4")
      expect(messages.length).toBe(3)
    }).pipe(Effect.scoped))

  it.live("ends with ClosedByPeer if it closes stdout and keeps running", () =>
    Effect.gen(function*() {
      const { connection, ended } = yield* open("closes-stdout")
      expect(yield* ended).toEqual({ _tag: "ClosedByPeer" })
      expect(gone(connection.pid)).toBe(false)
    }).pipe(Effect.scoped))

  it.effect("waits half a second by default for the other signs of the exit", () =>
    Effect.gen(function*() {
      const closed = Deferred.makeUnsafe<void>()
      const { connection, ends } = yield* open("closes-stdout", {
        ...byDefault,
        stderr: () => Deferred.doneUnsafe(closed, Effect.void)
      })
      yield* Deferred.await(closed)
      yield* turns(20)
      yield* TestClock.adjust(499)
      expect(ends).toEqual([])
      yield* TestClock.adjust(1)
      expect(ends).toEqual([{ _tag: "ClosedByPeer" }])
      process.kill(connection.pid, "SIGKILL")
      yield* connection.exited
    }).pipe(Effect.scoped))

  it.live("ends with Lost if it closes stdin and keeps running", () =>
    Effect.gen(function*() {
      const { call, ended, until } = yield* open("closes-stdin")
      yield* until("ready")
      expect(call(1)).toBe(true)
      expect(lost(yield* ended).message).toBe("The server no longer reads its stdin")
    }).pipe(Effect.scoped))

  it.live("send never throws", () =>
    Effect.gen(function*() {
      const { call, connection, ended } = yield* open("brief", { with: ["1"] })
      yield* connection.exited
      for (let i = 0; i < 100; i++) call(i, "x".repeat(10_000))
      yield* ended
      for (let i = 0; i < 100; i++) expect(call(i)).toBe(true)
    }).pipe(Effect.scoped))
})

describe("starting a server", () => {
  const message = (more: Partial<Stdio.Options>) =>
    Effect.map(Effect.flip(Effect.scoped(Stdio.connect(options("echo", more)))), (error) => {
      expect([error._tag, error.reason._tag]).toEqual(["TransportError", "OpenFailed"])
      return error.message
    })

  it.live("fails with OpenFailed and the cause", () =>
    Effect.gen(function*() {
      expect(yield* message({ command: "skein-no-such-command" })).toBe(
        "Cannot start \"skein-no-such-command\": the command was not found"
      )
      expect(yield* message({ cwd: "/no/such/folder" })).toBe(
        `Cannot start ${JSON.stringify(process.execPath)}: the working directory /no/such/folder does not exist`
      )
      expect(yield* message({ command: "/" })).toMatch(/^Cannot start "\/": .*EACCES/)
      expect(yield* message({ args: ["a\0b"] })).toMatch(/^Cannot start .*null bytes/)
      expect(yield* message({ command: "" })).toMatch(/^Cannot start "": /)
    }))

  it.live("passes on only the allowed environment variables and the configured ones", () =>
    Effect.gen(function*() {
      process.env["SKEIN_SECRET"] = "do not tell"
      const seen = Effect.fnUntraced(function*(more: Partial<Stdio.Options>) {
        const { until } = yield* open("environment", more)
        return params(yield* until("environment"))
      }, Effect.scoped)
      const plain = yield* seen({ env: { GIVEN: "yes", USER: undefined }, cwd: "/" })
      expect(plain).toMatchObject({ GIVEN: "yes", PATH: process.env["PATH"], cwd: "/" })
      expect(plain["USER"]).toBe(undefined)
      const known = new Set([...Stdio.defaultEnv, "GIVEN", "cwd"])
      expect(Object.keys(plain).filter((name) => !known.has(name))).toEqual([])
      const all = yield* seen({ inheritEnv: true, env: { GIVEN: "yes", USER: undefined } })
      expect(all).toMatchObject({ SKEIN_SECRET: "do not tell", GIVEN: "yes" })
      expect(all["USER"]).toBe(undefined)
      delete process.env["SKEIN_SECRET"]
    }))

  it.live("does not pass on functions that a shell exports", () =>
    Effect.gen(function*() {
      const before = process.env["LC_MESSAGES"]
      process.env["LC_MESSAGES"] = "() { :; }"
      const { until } = yield* open("environment")
      expect(params(yield* until("environment"))["LC_MESSAGES"]).toBe(undefined)
      if (before === undefined) delete process.env["LC_MESSAGES"]
      else process.env["LC_MESSAGES"] = before
    }).pipe(Effect.scoped))

  it.live("passes the arguments without a shell", () =>
    Effect.gen(function*() {
      const { call, ended } = yield* open("echo", {
        args: ["-e", "process.exit(process.argv[1] === '$(true); \"*' ? 0 : 9)", "$(true); \"*"]
      })
      call(1)
      expect(yield* ended).toEqual({ _tag: "ClosedByPeer" })
    }).pipe(Effect.scoped))
})

describe("bounds", () => {
  it.live("delivers all messages of a flooding server, and stores none of them", () =>
    Effect.gen(function*() {
      const total = 20_000
      const { messages, when } = yield* open("flood", { with: [String(total)] })
      const before = process.memoryUsage().arrayBuffers
      yield* when(() => messages.at(total / 2))
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024)
      yield* when(() => messages.at(total - 1))
      expect(messages.every((message, i) => (message as JsonRpc.Notification).method === `m${i}`)).toBe(true)
    }).pipe(Effect.scoped))

  it.live("returns false from send to a server that never reads, and closes the connection at the bound", () =>
    Effect.gen(function*() {
      const { call, connection, ended, ends, until } = yield* bounded(
        { maxUnsentChars: 1024 * 1024 },
        open("deaf")
      )
      yield* until("ready")
      const text = "x".repeat(100_000)
      let id = 0
      while (call(++id, text)) expect(id).toBeLessThan(100)
      yield* turns(1)
      let falses = 0
      while (ends.length === 0 && falses < 100) {
        if (!call(++id, text)) falses++
      }
      expect(falses).toBeLessThanOrEqual(11)
      expect(lost(yield* ended).message).toBe(
        "the peer does not read: more than 1048576 characters are waiting (maxUnsentChars)"
      )
      yield* connection.drained
      yield* connection.close
      expect(gone(connection.pid)).toBe(true)
    }).pipe(Effect.scoped))

  it.live("reads from a server that does not read, so that neither waits for the other", () =>
    Effect.gen(function*() {
      const { call, connection, until } = yield* open("deaf")
      yield* until("ready")
      for (let id = 1; call(id, "x".repeat(100_000)); id++) expect(id).toBeLessThan(100)
      process.kill(connection.pid, "SIGUSR2")
      yield* until("still there")
    }).pipe(Effect.scoped))

  it.live("receives an overlong line as Invalid", () =>
    Effect.gen(function*() {
      const { call, until } = yield* open("echo", { maxLineBytes: 1000 })
      call(1, "x".repeat(2000))
      call(2)
      yield* until(2)
      expect(yield* until(1)).toMatchObject({ _tag: "Invalid", answer: true, id: 1, error: { code: -32600 } })
    }).pipe(Effect.scoped))

  it.live("leaves no process, pipe, timer or listener of fifty servers", () =>
    Effect.gen(function*() {
      const resources = () =>
        process.getActiveResourcesInfo().filter((name) => /Pipe|Process|Timeout/.test(name)).length
      const before = resources()
      const listeners = process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)
      const pids: Array<number> = []
      for (let i = 0; i < 5; i++) {
        yield* Effect.forEach(Array.from({ length: 10 }), () =>
          Effect.scoped(Effect.gen(function*() {
            const connection = yield* Stdio.connect({ command: "cat", stderr: "capture" })
            pids.push(connection.pid)
            const { messages, until } = observe(connection)
            connection.send({ _tag: "Notification", method: "back", params: undefined })
            yield* until("back")
            expect(messages.length).toBe(1)
          })), { concurrency: "unbounded" })
      }
      expect(pids.length).toBe(50)
      expect(pids.filter((pid) => !gone(pid))).toEqual([])
      for (let i = 0; i < 20 && resources() > before; i++) yield* turns(10)
      expect(resources()).toBeLessThanOrEqual(before)
      expect(process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0)).toBe(listeners)
    }))

  it.live("leaves no process or pipe of servers that cannot start", () =>
    Effect.gen(function*() {
      const before = process.getActiveResourcesInfo().filter((name) => /Pipe|Process/.test(name)).length
      for (let i = 0; i < 20; i++) {
        yield* Effect.flip(Effect.scoped(Stdio.connect({ command: "skein-no-such-command" })))
      }
      yield* turns(10)
      expect(process.getActiveResourcesInfo().filter((name) => /Pipe|Process/.test(name)).length)
        .toBeLessThanOrEqual(before)
    }))

  it.live("ends the server when the fiber that opened it is interrupted", () =>
    Effect.gen(function*() {
      const opened = Deferred.makeUnsafe<Stdio.StdioConnection>()
      const fiber = yield* Effect.forkChild(Effect.scoped(Effect.gen(function*() {
        const { call, connection, until } = yield* open("stubborn")
        call(1)
        yield* until(1)
        Deferred.doneUnsafe(opened, Effect.succeed(connection))
        return yield* Effect.never
      })))
      const { pid, stderr } = yield* Deferred.await(opened)
      yield* Fiber.interrupt(fiber)
      expect(gone(pid)).toBe(true)
      expect(stderr()).toBe("eof\nterm\n")
    }))
})
