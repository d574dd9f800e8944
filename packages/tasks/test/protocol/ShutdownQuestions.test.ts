/**
 * A process that stops while a client without tasks is asked: the client has answered nothing, so its questions stay
 * open, and the task continues in the next process.
 */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { run } from "../../../server/test/stdio/Child.ts"
import * as http from "../../../server/test/http/kit.ts"
import type { Json } from "../../../server/test/kit.ts"

type Transport = "stdio" | "http"
type Asked = "one" | "several"
const counts = { one: 1, several: 4 } as const

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-asked-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
)

const until = (done: () => boolean): Effect.Effect<unknown> => Effect.repeat(Effect.sleep(5), { until: done })

/** Processes on the same files, one after the other. */
const processes = (transport: Transport) =>
  Effect.map(folder, (folder) => {
    const log = join(folder, "log")
    const lines = () => existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : []
    const valueOf = (name: string) => lines().findLast((line) => line.startsWith(`${name} `))?.slice(name.length + 1)
    return {
      /** The steps that have run. */
      steps: () => lines().filter((line) => !/^(id|port) /.test(line)),
      logged: (start: string) => until(() => lines().some((line) => line.startsWith(start))),
      taskId: () => valueOf("id")!,
      start: Effect.gen(function*() {
        const before = lines().filter((line) => line.startsWith("port ")).length
        const child = yield* Effect.acquireRelease(
          Effect.sync(() =>
            run("../../../../tasks/test/protocol/fixtures/asker.ts", [transport, join(folder, "tasks.db"), log])
          ),
          (child) => Effect.sync(() => child.process.kill("SIGKILL"))
        )
        if (transport === "http") {
          yield* until(() => lines().filter((line) => line.startsWith("port ")).length > before)
        }
        return { child, at: { port: Number(valueOf("port")) } }
      })
    }
  })

type Server = Effect.Success<Effect.Success<ReturnType<typeof processes>>["start"]>

const clientInfo = { name: "test", version: "1" }
const modernCapabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }

const hello = (protocolVersion: string) => ({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion, capabilities: { elicitation: {}, sampling: {}, roots: {} }, clientInfo }
})
const initialized = { jsonrpc: "2.0", method: "notifications/initialized" }
const order = (ask: Asked) => ({ name: "order", arguments: { ask } })

/** The metadata of a client of 2026-07-28; with the extension if it has tasks. */
const meta = (hasTasks: boolean) => ({
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {
    ...modernCapabilities,
    ...(hasTasks ? { extensions: { "io.modelcontextprotocol/tasks": {} } } : undefined)
  }
})

/** Sends a request of 2026-07-28, and returns its result. */
const modern = (
  transport: Transport,
  { at, child }: Server,
  id: number,
  method: string,
  params: Json,
  hasTasks = false
): Effect.Effect<Json> => {
  if (transport === "http") {
    const request = http.modern(method, params, {
      id,
      _meta: meta(hasTasks),
      headers: params.taskId === undefined ? {} : { "mcp-name": params.taskId }
    })
    return Effect.map(http.send(at, request), ({ json, messages }) => (json ?? messages.at(-1)).result)
  }
  child.process.stdin!.write(
    `${JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta: meta(hasTasks) } })}\n`
  )
  return Effect.map(Effect.promise(() => child.stdout.until(`"id":${id}`)), (line) => JSON.parse(line).result)
}

/** Calls the tool in a session, and waits until the client is asked. Returns the messages to the client. */
const callInSession = (
  transport: Transport,
  { at, child }: Server,
  revision: string,
  ask: Asked
): Effect.Effect<() => ReadonlyArray<Json>, never, Scope.Scope> =>
  Effect.gen(function*() {
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: order(ask) }
    const isQuestion = ({ id, method }: Json) => id !== undefined && method !== undefined
    if (transport === "stdio") {
      const say = (body: Json) => void child.process.stdin!.write(`${JSON.stringify(body)}\n`)
      say(hello(revision))
      yield* Effect.promise(() => child.stdout.until(`"id":0`))
      say(initialized)
      say(call)
      yield* until(() => child.messages().filter(isQuestion).length === counts[ask])
      return child.messages
    }
    const opened = yield* http.post(at, hello(revision))
    const headers = {
      ...http.posting,
      "mcp-session-id": String(opened.headers["mcp-session-id"]),
      "mcp-protocol-version": revision
    }
    yield* http.send(at, { headers, body: initialized })
    const stream = yield* http.open(at, { headers, body: call })
    const received: Array<Json> = []
    yield* Effect.forkScoped(
      Effect.forever(Effect.map(stream.message, (message) => void received.push(message))),
      { startImmediately: true }
    )
    yield* until(() => received.filter(isQuestion).length === counts[ask])
    return () => received
  })

const answers: { readonly [method: string]: (params: Json) => Json } = {
  "elicitation/create": ({ message }) => ({
    action: "accept",
    content: message === "Whose name?" ? { name: "Ann" } : { people: 4 }
  }),
  "sampling/createMessage": () => ({
    role: "assistant",
    model: "parrot",
    content: { type: "text", text: "Lemon" },
    stopReason: "endTurn"
  }),
  "roots/list": () => ({ roots: [] })
}

const answersTo = (inputRequests: { readonly [key: string]: Json }) =>
  Object.fromEntries(
    Object.entries(inputRequests).map(([key, { method, params }]) => [key, answers[method]!(params)])
  )

const baked = { one: "cake: accept", several: "cake: accept, accept, Lemon, 0 roots" } as const

/** Answers the questions of a task as another client. */
const answerElsewhere = (transport: Transport, server: Server, taskId: string, ask: Asked) =>
  Effect.gen(function*() {
    const task = yield* modern(transport, server, 11, "tasks/get", { taskId }, true)
    expect([task.status, Object.keys(task.inputRequests).length]).toEqual(["input_required", counts[ask]])
    yield* modern(
      transport,
      server,
      12,
      "tasks/update",
      { taskId, inputResponses: answersTo(task.inputRequests) },
      true
    )
  })

const stops = {
  SIGTERM: { exit: 143, stop: (server: Server) => server.child.process.kill("SIGTERM") },
  "the end of stdin": { exit: 0, stop: (server: Server) => server.child.process.stdin!.end() },
  "the end of stdin and SIGTERM": {
    exit: 143,
    stop: (server: Server) => {
      server.child.process.stdin!.end()
      server.child.process.kill("SIGTERM")
    }
  }
} as const

for (const transport of ["stdio", "http"] as const) {
  describe(`${transport}: a process that stops while a call is asked`, () => {
    for (const [how, { exit, stop }] of Object.entries(stops)) {
      if (transport === "http" && how !== "SIGTERM") continue
      for (const revision of ["2025-06-18", "2025-11-25"] as const) {
        for (const ask of how === "SIGTERM" || revision === "2025-11-25" ? ["one", "several"] as const : []) {
          it.live(
            `${revision} · ${how}, ${ask} open: the questions stay open, and the task ends in the next process once they are answered`,
            () =>
              Effect.scoped(Effect.gen(function*() {
                const { logged, start, steps, taskId } = yield* processes(transport)
                const first = yield* start
                const received = yield* callInSession(transport, first, revision, ask)
                stop(first)
                expect(yield* Effect.promise(() => first.child.exit)).toBe(exit)
                const response = received().find(({ id, method }) => id === 1 && method === undefined)
                if (transport === "stdio") expect(response).toBe(undefined)
                else expect(response.error.message).toContain("which may have run: check that before you send it again")
                const second = yield* start
                yield* answerElsewhere(transport, second, taskId(), ask)
                yield* logged("cake")
                expect(steps()).toEqual(["oven on", baked[ask]])
              })),
            60_000
          )
        }
      }
    }

    it.live(
      "2026-07-28 · SIGTERM between two rounds: the next process continues the task with the answers",
      () =>
        Effect.scoped(Effect.gen(function*() {
          const { start, steps } = yield* processes(transport)
          const first = yield* start
          const round = yield* modern(transport, first, 1, "tools/call", order("several"))
          first.child.process.kill("SIGTERM")
          expect(yield* Effect.promise(() => first.child.exit)).toBe(143)
          const second = yield* start
          const { requestState } = round
          const inputResponses = answersTo(round.inputRequests)
          const params = { ...order("several"), requestState, inputResponses }
          const { content } = yield* modern(transport, second, 2, "tools/call", params)
          expect(content).toEqual([{ type: "text", text: "A cake" }])
          expect(steps()).toEqual(["oven on", baked.several])
        })),
      60_000
    )
  })
}

describe("HTTP+SSE: a process that stops while a call is asked", () => {
  it.live(
    "SIGTERM: the question stays open, and the task ends in the next process once it is answered",
    () =>
      Effect.scoped(Effect.gen(function*() {
        const { logged, start, steps, taskId } = yield* processes("http")
        const first = yield* start
        const stream = yield* http.open(first.at, { method: "GET", path: "/sse" })
        const path = (yield* stream.next).data!
        const say = (body: Json) => http.send(first.at, { path, headers: http.posting, body })
        yield* say(hello("2025-06-18"))
        yield* stream.message
        yield* say(initialized)
        yield* say({ jsonrpc: "2.0", id: 1, method: "tools/call", params: order("one") })
        expect((yield* stream.message).method).toBe("elicitation/create")
        first.child.process.kill("SIGTERM")
        expect(yield* Effect.promise(() => first.child.exit)).toBe(143)
        const second = yield* start
        yield* answerElsewhere("http", second, taskId(), "one")
        yield* logged("cake")
        expect(steps()).toEqual(["oven on", baked.one])
      })),
    60_000
  )
})
