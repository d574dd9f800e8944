/** A client with promises: against servers of the same kind in all revisions, and against scripted servers. */
import { join } from "node:path"
import { inspect } from "node:util"
import { afterEach, describe, expect, expectTypeOf, it, vi } from "@effect/vitest"
import * as Method from "@skein/protocol/Method"
import * as Revision from "@skein/protocol/Revision"
import { AsyncServer } from "@skein/server/AsyncServer"
import { VisibleError } from "@skein/server/HandlerError"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import { z } from "zod"
import { AsyncClient } from "../src/AsyncClient.ts"
import type { Client } from "../src/Client.ts"
import * as Sampling from "../src/Sampling.ts"
import { census } from "./support/census.ts"

/** Unhandled rejections, which would end a process. */
const unhandled: Array<unknown> = []
const onUnhandled = (error: unknown) => void unhandled.push(error)
process.on("unhandledRejection", onUnhandled)
afterEach(async () => {
  await new Promise(setImmediate)
  expect(unhandled.splice(0)).toEqual([])
})

/** Resolves when a handler has begun, and records whether its signal has aborted. */
class Pending {
  readonly begun: Promise<void>
  readonly aborted: Promise<void>
  #begin!: () => void
  #abort!: () => void

  constructor() {
    this.begun = new Promise((resolve) => this.#begin = resolve)
    this.aborted = new Promise((resolve) => this.#abort = resolve)
  }

  /** Waits until the signal aborts. */
  readonly run = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        this.#abort()
        reject(signal.reason)
      })
      this.#begin()
    })
}

const waiting = (pending: Pending) =>
  new AsyncServer({ name: "waiting", version: "1.0.0" })
    .tool("wait", {}, (_, { signal }) => pending.run(signal))

const shop = () =>
  new AsyncServer({ name: "shop", version: "1.0.0", instructions: "Buy tea." })
    .tool("sum", {
      input: z.object({ a: z.number(), b: z.number() }),
      output: z.object({ sum: z.number() })
    }, async ({ a, b }, { log, progress }) => {
      log.info("adding")
      await progress({ progress: 1, total: 2 })
      return { sum: a + b }
    })
    .tool("fail", {}, () => {
      throw new VisibleError("there is no tea")
    })
    .tool("form", {}, async (_, { elicit }) => {
      const answer = await elicit("For how many?", z.object({ people: z.int() }))
      return answer.action === "accept" ? `${answer.content.people}` : answer.action
    })
    .tool("visit", {}, async (_, { elicitUrl }) => (await elicitUrl("Pay", "https://pay.example.com/")).action)
    .tool("sample", {}, async (_, { sample }) => {
      const { content } = await sample({
        messages: [{ role: "user", content: { type: "text", text: "Hi" } }],
        maxTokens: 10
      })
      return JSON.stringify(content)
    })
    .tool("roots", {}, async (_, { roots }) => (await roots()).map(({ uri }) => uri).join())
    .resource("shop://menu", {}, () => "# Tea")
    .template("shop://{id}", { name: "one" }, ({ id }) => id)
    .prompt("greet", { arguments: { name: Schema.String } }, ({ name }) => `Greet ${name}`, {
      complete: { name: ["Ada", "Grace"] }
    })

const text = (text: string) => ({ content: [{ type: "text", text }] })

for (const revision of Revision.all) {
  describe(revision, () => {
    it("returns what the server returns, and receives progress and logs", async () => {
      const logs: Array<unknown> = []
      const client = await AsyncClient.connect(shop().transport(), {
        revisions: [revision],
        info: { name: "test", version: "1" },
        onLog: ({ data }) => void logs.push(data)
      })
      expect([client.revision, client.era, client.server?.name]).toEqual([revision, Revision.era(revision), "shop"])
      expect([client.instructions, client.label, client.capabilities.tools !== undefined])
        .toEqual(["Buy tea.", undefined, true])
      const progress: Array<number> = []
      const args = { a: 1, b: 2 }
      const output = z.object({ sum: z.number().transform((sum) => `${sum}`) })
      const options = { output, onProgress: (report: { progress: number }) => void progress.push(report.progress) }
      const typed = await client.callTool("sum", args, options)
      expectTypeOf(typed).toEqualTypeOf<{ sum: string }>()
      expect([typed, progress]).toEqual([{ sum: "3" }, [1]])
      await vi.waitFor(() => expect(logs).toEqual(["adding"]), 60_000)
      expect(await client.callTool("sum", args, { output: Schema.Struct({ sum: Schema.Number }) })).toEqual({ sum: 3 })
      expect(await client.callTool("fail")).toMatchObject({ isError: true, ...text("there is no tea") })
      expect((await client.listTools()).map(({ name }) => name)).toContain("sum")
      expect((await client.listToolsPage()).tools.length).toBe(6)
      expect((await client.listResources()).map(({ uri }) => uri)).toEqual(["shop://menu"])
      expect((await client.listResourcesPage()).resources.length).toBe(1)
      expect((await client.listResourceTemplates()).length).toBe(1)
      expect((await client.listResourceTemplatesPage()).resourceTemplates.length).toBe(1)
      expect((await client.readResource("shop://menu")).contents).toMatchObject([{ text: "# Tea" }])
      expect((await client.listPrompts()).length).toBe(1)
      expect((await client.listPromptsPage()).prompts.length).toBe(1)
      expect((await client.getPrompt("greet", { name: "Ada" })).messages).toMatchObject([
        { content: { text: "Greet Ada" } }
      ])
      const { completion } = await client.complete({
        ref: { type: "ref/prompt", name: "greet" },
        argument: { name: "name", value: "G" }
      })
      expect(completion.values).toEqual(["Grace"])
      await client.ping()
      await vi.waitFor(() => expect(logs).toEqual(["adding", "adding"]), 60_000)
      await client.setLoggingLevel("error")
      await client.callTool("sum", args)
      await client.ping()
      expect(logs.length).toBe(2)
      expect(await client.request(Method.CallTool, { name: "sum", arguments: args })).toMatchObject(text("{\"sum\":3}"))
      client.clearCache()
      await client.close()
      expect((await client.ended())._tag).toBe("ClosedByUs")
    })

    it("answers forms, URLs, sampling and roots with async handlers", async () => {
      await using client = await AsyncClient.connect(shop().transport(), {
        revisions: [revision],
        elicit: async ({ message, problem }) => {
          expect([message, problem({ people: "x" })]).toEqual(["For how many?", expect.stringContaining("people")])
          return { action: "accept", content: { people: 3 } }
        },
        elicitUrl: ({ host }) => ({ action: host === "pay.example.com" ? "accept" : "decline" }),
        sample: async () => ({ role: "assistant", model: "m", content: { type: "text", text: "Hello" } }),
        roots: async ({ info }) => [{ uri: `file:///${info?.name}` }]
      })
      const hasForms = revision >= "2025-06-18"
      const hasUrls = revision >= "2025-11-25"
      expect(await client.callTool("form")).toMatchObject(hasForms ? text("3") : { isError: true })
      expect(await client.callTool("visit")).toMatchObject(hasUrls ? text("accept") : { isError: true })
      expect(await client.callTool("sample")).toMatchObject(text("[{\"type\":\"text\",\"text\":\"Hello\"}]"))
      expect(await client.callTool("roots")).toMatchObject(text("file:///shop"))
    })

    it("cancels an aborted call at the server, and rejects with the reason of the signal", async () => {
      const pending = new Pending()
      await using client = await AsyncClient.connect(waiting(pending).transport(), { revisions: [revision] })
      const controller = new AbortController()
      const call = client.callTool("wait", {}, { signal: controller.signal })
      await pending.begun
      controller.abort()
      await expect(call).rejects.toMatchObject({ name: "AbortError" })
      await pending.aborted
      const reason = new Error("no longer needed")
      await expect(client.listTools({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    })

    it("rejects a call that is pending when the client is closed, and every later call", async () => {
      const pending = new Pending()
      const client = await AsyncClient.connect(waiting(pending).transport(), { revisions: [revision] })
      const call = client.callTool("wait")
      const failure = call.then(() => undefined, (error: unknown) => error)
      await pending.begun
      const closing = client.close()
      expect(client.close()).toBe(closing)
      await Promise.all([closing, pending.aborted])
      expect(await failure).toMatchObject({ _tag: "ClientError", reason: { _tag: "Closed" } })
      await expect(client.ping()).rejects.toMatchObject({ reason: { _tag: "Closed" } })
    })

    it("reports changes to a loop, and ends the loop when the client is closed", async () => {
      await using client = await AsyncClient.connect(shop().transport(), { revisions: [revision] })
      const [first, second] = [client.changes({ tools: true }), client.changes({ tools: true })]
        .map((changes) => changes[Symbol.asyncIterator]())
      expect((await first!.next()).value).toMatchObject({ _tag: "Subscribed" })
      expect((await second!.next()).value).toMatchObject({ _tag: "Subscribed" })
      const pending = first!.next()
      expect(await first!.return!()).toEqual({ done: true, value: undefined })
      expect(await pending).toEqual({ done: true, value: undefined })
      const open = second!.next()
      await client.close()
      expect(await open).toEqual({ done: true, value: undefined })
      expect(await second!.next()).toEqual({ done: true, value: undefined })
    })
  })
}

describe("AsyncClient", () => {
  it("leaves no fiber, handle or listener after close", async () => {
    const controller = new AbortController()
    const { signal } = controller
    const use = async () => {
      const pending = new Pending()
      const server = waiting(pending)
        .tool("ask", {}, async (_, { elicit }) => (await elicit("?", { a: Schema.String })).action)
      const asked = new Pending()
      const client = await AsyncClient.connect(server.transport(), {
        signal,
        elicit: (_, { signal }) => asked.run(signal),
        onLog: () => {}
      })
      const ended = [client.callTool("wait", {}, { signal }), client.callTool("ask")]
        .map((call) => call.then(() => "resolved", ({ reason }) => reason._tag))
      const changes = client.changes({ tools: true }, { signal })[Symbol.asyncIterator]()
      await changes.next()
      const next = changes.next()
      await Promise.all([pending.begun, asked.begun])
      await client.close()
      await asked.aborted
      expect(await Promise.all(ended)).toEqual(["Closed", "Closed"])
      expect(await next).toEqual({ done: true, value: undefined })
    }
    await use()
    const before = await Effect.runPromise(census)
    for (let run = 0; run < 5; run++) await use()
    const after = await Effect.runPromise(census)
    expect(after.fibers).toBeLessThanOrEqual(before.fibers)
    expect(after.resources.length).toBeLessThanOrEqual(before.resources.length)
    expect(after.listeners).toBeLessThanOrEqual(before.listeners)
    controller.abort()
  }, 60_000)

  it("connects by a URL and by the options of a transport", async () => {
    const { close, url } = await new AsyncServer({ name: "s", version: "1" }).listen({ port: 0 })
    try {
      for (const server of [url, new URL(url), { url }]) {
        await using client = await AsyncClient.connect(server)
        expect(client.server?.name).toBe("s")
      }
    } finally {
      await close()
    }
  })

  it("names the exit of a command and the end of its stderr, which goes to that of this process too", async () => {
    const write = vi.spyOn(process.stderr, "write").mockReturnValue(true)
    try {
      const missing = AsyncClient.connect(`"${process.execPath}" nope.ts`)
      await expect(missing).rejects.toThrow(
        /The server exited with code 1; the end of its stderr: .*Cannot find module .*nope\.ts/s
      )
      const args = ["-e", "console.error('PORT is not set'); process.exit(3)"]
      const failing = AsyncClient.connect({ command: process.execPath, args })
      await expect(failing).rejects.toThrow("The server exited with code 3; the end of its stderr: PORT is not set")
      expect(write.mock.calls.map(([text]) => text).join("")).toContain("PORT is not set\n")
      write.mockClear()
      const captured = AsyncClient.connect({ command: process.execPath, args, stderr: "capture" })
      await expect(captured).rejects.toThrow("PORT is not set")
      expect(write).not.toHaveBeenCalled()
    } finally {
      write.mockRestore()
    }
  })

  it("connects by a command", async () => {
    const file = join(import.meta.dirname, "support/echo server.ts")
    const node = [process.execPath, "--conditions=@skein/source"]
    for (const server of [`"${node[0]}" ${node[1]} '${file}'`, { command: node[0]!, args: [node[1]!, file] }]) {
      await using client = await AsyncClient.connect(server)
      expect((await client.callTool("echo", { text: "hi" })).content).toMatchObject([{ text: "hi" }])
    }
  })

  it("rejects a value that names no server", async () => {
    const connect = (server: unknown) => AsyncClient.connect(server as string)
    const expected = "AsyncClient.connect expects a URL, a command, { url }, { command, args } or a transport, and got "
    await expect(connect(undefined)).rejects.toThrow(`${expected}undefined`)
    await expect(connect(3000)).rejects.toThrow(`${expected}a number`)
    await expect(connect("  ")).rejects.toThrow(`${expected}a string`)
    await expect(connect({ uri: "x", args: [] })).rejects.toThrow(`${expected}an object with uri, args`)
    await expect(connect(shop())).rejects.toThrow(`${expected}a server: pass its transport, server.transport()`)
    await expect(AsyncClient.connect("node", ["server.js"] as never)).rejects.toThrow(
      "are one text, or { command, args }"
    )
  })

  it("fails at the lines of the program that await the call, without those of fibers", async () => {
    await using client = await AsyncClient.connect(shop().transport())
    const order = async () => await client.callTool("none")
    const failed = await order().catch((error: unknown) => error) as Error
    expect(failed.stack).toMatch(
      /^ClientError: tools\/call: [^\n]+\n +at (?:async )?order \([^\n]+AsyncClient\.test\.ts/
    )
    expect(inspect(failed)).toMatch(/^ClientError: /)
    expect(inspect(failed)).not.toMatch(/node_modules.effect|promiseRunner/)
  })

  it("closes when its signal aborts", async () => {
    const { signal, abort } = (() => {
      const controller = new AbortController()
      return { signal: controller.signal, abort: () => controller.abort() }
    })()
    const client = await AsyncClient.connect(shop().transport(), { signal })
    const ended = client.ended()
    abort()
    expect((await ended)._tag).toBe("ClosedByUs")
    await client.close()
  })

  it("closes the transport of a connection that is aborted or refused, and rejects", async () => {
    const controller = new AbortController()
    const silent = ScriptedServer.make(() => {
      controller.abort()
      return "no response"
    })
    const connecting = AsyncClient.connect(silent.transport, { signal: controller.signal })
    await expect(connecting).rejects.toMatchObject({ name: "AbortError" })
    expect([silent.connections, silent.openConnections]).toEqual([1, 0])
    await expect(AsyncClient.connect(silent.transport, { signal: controller.signal })).rejects
      .toMatchObject({ name: "AbortError" })
    expect(silent.connections).toBe(1)
    const broken = shop().tool("sum", {}, () => "")
    await expect(AsyncClient.connect(broken.transport())).rejects.toMatchObject({
      reason: { _tag: "ConnectionFailed", message: expect.stringContaining("the server cannot be built") }
    })
    await expect(AsyncClient.connect(shop().transport(), { roots: [{ uri: "https://a" }] })).rejects
      .toMatchObject({ _tag: "InvalidRoot" })
  })

  it("rejects a result that the schema rejects, and one with isError, with the result", async () => {
    await using client = await AsyncClient.connect(shop().transport())
    const output = z.object({ sum: z.string(), deep: z.object({ a: z.number() }) })
    await expect(client.callTool("sum", { a: 1, b: 2 }, { output })).rejects.toMatchObject({
      message: expect.stringMatching(/The result of the tool sum does not match .* at \["sum"\]\n.* at \["deep"\]/s),
      reason: { _tag: "InvalidResponse", result: { structuredContent: { sum: 3 } } }
    })
    await expect(client.callTool("fail", {}, { output })).rejects.toMatchObject({
      reason: { _tag: "ToolFailed", result: { isError: true } }
    })
  })

  it("rejects with Timeout after the timeout of a call", async () => {
    const pending = new Pending()
    await using client = await AsyncClient.connect(waiting(pending).transport())
    await expect(client.callTool("wait", {}, { timeout: 20 })).rejects.toMatchObject({ reason: { _tag: "Timeout" } })
    await pending.aborted
  })

  it("reports a refused sampling request, and hides the error of a handler", async () => {
    await using client = await AsyncClient.connect(shop().transport(), {
      revisions: ["2025-11-25"],
      sample: () => {
        throw new Sampling.SamplingRefused({ message: "the user said no" })
      },
      elicit: async () => {
        throw new Error("a secret")
      }
    })
    expect(JSON.stringify(await client.callTool("sample"))).toContain("the user said no")
    const failed = await client.callTool("form")
    expect(failed.isError).toBe(true)
    expect(JSON.stringify(failed)).not.toContain("secret")
  })

  it("repeats a call that requires a visit once the promise of the consent has settled", async () => {
    const visit = { mode: "url", elicitationId: "v", url: "https://pay.example.com/", message: "Pay" }
    const error = { code: -32042, message: "Pay first", data: { elicitations: [visit] } }
    let calls = 0
    const server = ScriptedServer.make(
      ScriptedServer.handshake(
        "2025-11-25",
        ({ method }) => method === "tools/call" && ++calls % 2 === 1 ? { error } : ScriptedServer.success(text("paid"))
      )
    )
    for (const settle of [() => Promise.resolve(), () => Promise.reject(new Error("closed"))]) {
      const required: Array<boolean> = []
      await using client = await AsyncClient.connect(server.transport, {
        elicitUrl: (request) => {
          required.push(request.required)
          return { action: "accept", done: settle() }
        }
      })
      expect(await client.callTool("buy", {}, { retry: true })).toMatchObject(text("paid"))
      expect(required).toEqual([true])
    }
    expect(calls).toBe(4)
  })

  it("continues after an exception in onLog", async () => {
    await using client = await AsyncClient.connect(shop().transport(), {
      onLog: () => {
        throw new Error("disk full")
      }
    })
    expect(await client.callTool("sum", { a: 1, b: 2 })).toMatchObject(text("{\"sum\":3}"))
  })

  it("throws the reason of the signal of a loop once, and then ends", async () => {
    await using client = await AsyncClient.connect(shop().transport())
    const controller = new AbortController()
    const statuses = client.status({ signal: controller.signal })[Symbol.asyncIterator]()
    expect((await statuses.next()).value).toMatchObject({ _tag: "Connected" })
    const next = statuses.next()
    const after = statuses.next()
    controller.abort()
    await expect(next).rejects.toMatchObject({ name: "AbortError" })
    expect(await after).toEqual({ done: true, value: undefined })
  })

  it("throws the failure of a stream in its loop", async () => {
    const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => ScriptedServer.success({})))
    await using client = await AsyncClient.connect(server.transport)
    const read = async () => {
      for await (const change of client.changes({ taskIds: ["a"] })) expect(change).toBeUndefined()
    }
    await expect(read()).rejects.toMatchObject({ reason: { _tag: "Unsupported" } })
    const seen: Array<string> = []
    const reading = (async () => {
      for await (const { _tag } of client.notifications()) {
        seen.push(_tag)
        if (seen.length === 2) break
      }
    })()
    await new Promise(setImmediate)
    server.notify("notifications/tools/list_changed")
    server.notify("notifications/other")
    await reading
    expect(seen).toEqual(["ToolListChanged", "Other"])
  })

  it("follows tasks with promises and loops, and cancels them", async () => {
    const tea = Task.async(Task.make("tea", { input: z.object({ cups: z.int() }) }), async ({ cups }, { sleep }) => {
      await sleep("steep", cups * 10)
      return `${cups} cups`
    })
    const server = new AsyncServer({ name: "tea", version: "1.0.0" })
      .use(Layer.provide(Layer.merge(tea, Tasks.layer()), MemoryTasks.layer({ pollInterval: "100 millis" })))
    await using client = await AsyncClient.connect(server.transport())
    const created: Array<string> = []
    const task = { onTask: ({ id }: { readonly id: string }) => void created.push(id) }
    expect(await client.callTool("tea", { cups: 2 }, { task })).toMatchObject(text("2 cups"))
    const started = await client.startTask("tea", { cups: 1 })
    if (started._tag !== "RemoteTask") return expect(started._tag).toBe("RemoteTask")
    expect(created.length).toBe(1)
    const states: Array<string> = []
    for await (const { status } of started.states()) states.push(status)
    expect(states.at(-1)).toBe("completed")
    expect(await (await client.resumeTask(started.handle)).result()).toMatchObject(text("1 cups"))
    const long = await client.startTask("tea", { cups: 100_000 })
    if (long._tag !== "RemoteTask") return expect(long._tag).toBe("RemoteTask")
    await long.cancel()
    await expect(long.result()).rejects.toMatchObject({ reason: { _tag: "TaskCancelled" } })
  }, 120_000)

  it("returns the result of a tool that is not a task from startTask", async () => {
    await using client = await AsyncClient.connect(shop().transport())
    const started = await client.startTask("sum", { a: 1, b: 2 })
    expect(started._tag).toBe("Finished")
    expect(await started.result()).toMatchObject(text("{\"sum\":3}"))
  })

  it("has methods that work without the client", async () => {
    const { callTool, close, listTools } = await AsyncClient.connect(shop().transport())
    expect((await listTools()).length).toBe(6)
    expect(await callTool("sum", { a: 1, b: 2 })).toMatchObject(text("{\"sum\":3}"))
    await close()
  })

  it("runs each call with the services that the option returns", async () => {
    const logged: Array<unknown> = []
    const logger = Logger.make(({ fiber }) => void logged.push(fiber.getRef(References.CurrentLogAnnotations)))
    let calls = 0
    const client = await AsyncClient.connect(shop().transport(), {
      middleware: [(next) => (call) => Effect.andThen(Effect.logInfo(call.method.name), next(call))],
      services: () =>
        Context.make(References.CurrentLoggers, new Set([logger])).pipe(
          Context.add(References.CurrentLogAnnotations, { call: ++calls })
        )
    })
    const before = calls
    await client.listTools()
    await client.callTool("fail")
    expect(logged).toEqual([{ call: before + 1 }, { call: before + 2 }])
    await client.close()
  })

  it("shares the server of a transport with other clients, and closes it after the last one", async () => {
    let starts = 0
    let ends = 0
    const counted = Layer.effectDiscard(Effect.acquireRelease(
      Effect.sync(() => void starts++),
      () => Effect.sync(() => void ends++)
    ))
    const transport = shop().use(counted).transport()
    const first = await AsyncClient.connect(transport)
    const second = await AsyncClient.connect(transport)
    await first.close()
    expect([starts, ends]).toEqual([1, 0])
    await second.ping()
    await second.close()
    expect([starts, ends]).toEqual([1, 1])
    const third = await AsyncClient.connect(transport)
    await third.close()
    expect([starts, ends]).toEqual([2, 2])
  })
})

describe("the methods of both clients", () => {
  it("AsyncClient has the members of Client, those that close it, and a toolkit", () => {
    type Added = "close" | "toolkit" | typeof Symbol.asyncDispose
    // Log messages go to the option `onLog`.
    expectTypeOf<Exclude<keyof Client, keyof AsyncClient>>().toEqualTypeOf<"logs">()
    expectTypeOf<Exclude<keyof AsyncClient, keyof Client>>().toEqualTypeOf<Added>()
  })
})
