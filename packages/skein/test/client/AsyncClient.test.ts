/** Clients of the package `skein`: calls, questions, middleware, credentials, caches, tasks, errors. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { fileURLToPath } from "node:url"
import { afterEach, describe, expect, it } from "@effect/vitest"
import { AsyncServer as CoreServer } from "@skein/server/AsyncServer"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Layer from "effect/Layer"
import { AsyncServer, VisibleError } from "skein"
import {
  AsyncClient,
  bearer,
  ClientError,
  type ConnectOptions,
  credentials,
  deny,
  estimateTokens,
  fitSchema,
  Http,
  InvalidRoot,
  isToolCall,
  middleware,
  NodeHttp,
  PoolError,
  type RemoteTask,
  responseCache,
  responseStore,
  SamplingRefused,
  type Server,
  Stdio,
  type StoredResponse,
  type TaskHandle,
  type Transport,
  TransportError,
  uriTemplate
} from "skein/client"
import { z } from "zod"

const shop = () =>
  new AsyncServer({ name: "shop", version: "1.0.0", instructions: "Buy tea." })
    .tool(
      "sum",
      { input: z.object({ a: z.number(), b: z.number() }), output: z.object({ sum: z.number() }) },
      async ({ a, b }, { log, progress }) => {
        log.info("adding")
        await progress({ progress: 1, total: 2 })
        return { sum: a + b }
      }
    )
    .tool("fail", {}, () => {
      throw new VisibleError("there is no tea")
    })
    .tool("wait", {}, (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason))
      ))
    .tool("ask", {}, async (_, { elicit }) => {
      const answer = await elicit("For how many?", z.object({ people: z.int() }))
      return answer.action === "accept" ? `for ${answer.content.people}` : answer.action
    })
    .resource("shop://menu", {}, () => "# Tea")
    .template("shop://teas/{id}", { name: "tea" }, ({ id }) => `tea ${id}`)
    .prompt("order", { arguments: z.object({ tea: z.string() }) }, ({ tea }) => `Order ${tea}`)

const closing: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

const connect = async (server: Server, options?: ConnectOptions): Promise<AsyncClient> => {
  const client = await AsyncClient.connect(server, options)
  closing.push(() => client.close())
  return client
}

const failureOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => "no error", (error) => error)

const listen = async () => {
  const listening = await shop().listen({ port: 0 })
  closing.push(listening.close)
  return listening.url
}

describe("AsyncClient", () => {
  it("returns what the server returns, and receives progress and logs", async () => {
    const logs: Array<unknown> = []
    const reports: Array<unknown> = []
    const client = await connect(shop().transport(), { onLog: ({ data, level }) => logs.push([level, data]) })
    expect(client).toBeInstanceOf(AsyncClient)
    expect(client.server?.name).toBe("shop")
    expect(client.instructions).toBe("Buy tea.")
    const { sum } = await client.callTool("sum", { a: 1, b: 2 }, {
      output: z.object({ sum: z.number() }),
      onProgress: (progress) => reports.push(progress),
      timeout: "10 seconds"
    })
    expect(sum).toBe(3)
    expect(reports).toMatchObject([{ progress: 1, total: 2 }])
    await expect.poll(() => logs).toEqual([["info", "adding"]])
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["sum", "fail", "wait", "ask"])
    expect((await client.listToolsPage()).tools).toHaveLength(4)
    expect((await client.listResources()).map(({ uri }) => uri)).toEqual(["shop://menu"])
    expect((await client.readResource("shop://menu")).contents).toMatchObject([{ text: "# Tea" }])
    expect(await client.listPrompts()).toMatchObject([{ name: "order" }])
    expect((await client.getPrompt("order", { tea: "oolong" })).messages).toMatchObject([
      { role: "user", content: { text: "Order oolong" } }
    ])
    const { tools } = await client.request("tools/list", {})
    expect(tools).toHaveLength(4)
    await client.ping()
  })

  it("makes the URIs of resource templates", async () => {
    const client = await connect(shop().transport())
    const [listed] = await client.listResourceTemplates()
    const template = uriTemplate(listed!.uriTemplate)
    const uri = template.expand({ id: "green tea" })
    expect((await client.readResource(uri)).contents).toMatchObject([{ uri, text: "tea green tea" }])
    expect(template.names).toEqual(["id"])
    expect(template.match(uri)).toEqual({ id: "green tea" })
    expect(template.match("shop://menu")).toBeUndefined()
    expect(() => uriTemplate("{")).toThrow(SyntaxError)
  })

  it("connects by a URL, by options and by transports", async () => {
    const url = await listen()
    for (const server of [url, new URL(url), { url }, Http.transport({ url }), NodeHttp.transport({ url })]) {
      const client = await connect(server)
      expect(await client.callTool("sum", { a: 1, b: 2 })).toMatchObject({ structuredContent: { sum: 3 } })
    }
  })

  it("connects by a command, and reports how a process has failed", async () => {
    const program = fileURLToPath(new URL("fixtures/server.ts", import.meta.url))
    const args = ["--conditions=@skein/source", program]
    const client = await connect({ command: process.execPath, args })
    expect(await client.callTool("greet", { name: "Ada" })).toMatchObject({ content: [{ text: "Hello, Ada" }] })
    const failing = Stdio.transport({ command: process.execPath, args: ["-e", "process.exit(3)"], stderr: "capture" })
    const error = await failureOf(AsyncClient.connect(failing))
    expect(error).toMatchObject({ _tag: "ClientError", message: expect.stringContaining("exited with code 3") })
    expect(Stdio.defaultEnv).toContain("PATH")
  })

  it("rejects with errors whose reasons have details", async () => {
    const client = await connect(shop().transport())
    const output = z.object({ sum: z.string() })
    const failed = await failureOf(client.callTool("fail", {}, { output }))
    expect(failed).toBeInstanceOf(ClientError)
    expect(failed).toMatchObject({ reason: { _tag: "ToolFailed", result: { isError: true } }, method: "tools/call" })
    expect(await failureOf(client.callTool("sum", { a: 1, b: 2 }, { output })))
      .toMatchObject({ reason: { _tag: "InvalidResponse" } })
    expect(await failureOf(client.callTool("none"))).toMatchObject({
      reason: { _tag: "ProtocolError", error: { _tag: "McpError", reason: "InvalidParams" } }
    })
    const closed = await failureOf(AsyncClient.connect("http://127.0.0.1:1/mcp"))
    expect(closed).toMatchObject({ reason: { _tag: "ConnectionFailed" } })
    expect((closed as ClientError).reason.cause).toBeInstanceOf(TransportError)
    expect(await failureOf(AsyncClient.connect("")))
      .toMatchObject({ message: expect.stringMatching(/^AsyncClient\.connect expects a URL/) })
    expect(await failureOf(AsyncClient.connect("node", ["server.js"] as never)))
      .toMatchObject({ message: "A command and its arguments are one text, or { command, args }" })
  })

  it("cancels an aborted call, and ends pending calls when it is closed", async () => {
    const client = await connect(shop().transport())
    const aborted = failureOf(client.callTool("wait", {}, { signal: AbortSignal.timeout(1) }))
    expect(await aborted).toMatchObject({ name: "TimeoutError" })
    const pending = failureOf(client.callTool("wait"))
    await client.close()
    expect(await pending).toMatchObject({ reason: { _tag: "Closed" } })
    expect(await client.ended()).toEqual({ _tag: "ClosedByUs" })
  })

  it("loops over statuses, changes and notifications, and ends the loops when it is closed", async () => {
    const client = await connect(shop().transport())
    const seen: Array<string> = []
    const statuses = (async () => {
      for await (const { _tag } of client.status()) {
        seen.push(_tag)
        if (_tag === "Connected") await client.close()
      }
    })()
    const notifications = (async () => {
      for await (const _ of client.notifications()) seen.push("notification")
    })()
    await Promise.all([statuses, notifications])
    expect(seen[0]).toBe("Connected")
  })

  it("reports the first change, and throws if the server reports none of the changes", async () => {
    const client = await connect(shop().transport())
    for await (const change of client.changes({ tools: true })) {
      expect(change).toMatchObject({ _tag: "Subscribed", honoured: { tools: true, prompts: false } })
      break
    }
    const server = new AsyncServer({ name: "empty", version: "1.0.0" })
    const empty = await connect(server.transport())
    const changes = empty.changes({ prompts: true })[Symbol.asyncIterator]()
    expect(await failureOf(changes.next())).toMatchObject({ reason: { _tag: "Unsupported" } })
  })

  it("has methods that may be taken out of it", async () => {
    const { close, listTools } = await connect(shop().transport())
    expect(await listTools()).toHaveLength(4)
    await close()
  })
})

describe("questions", () => {
  it("are answered by handlers", async () => {
    const questions: Array<unknown> = []
    const client = await connect(shop().transport(), {
      label: "my shop",
      elicit: async ({ message, problem, requestedSchema, server }, { signal }) => {
        questions.push([server.label, message, Object.keys(requestedSchema.properties), signal.aborted, problem({})])
        return { action: "accept", content: { people: 4 } }
      }
    })
    expect(await client.callTool("ask")).toMatchObject({ content: [{ text: "for 4" }] })
    expect(questions).toEqual([["my shop", "For how many?", ["people"], false, expect.stringContaining("people")]])
    const declining = await connect(shop().transport(), { elicit: () => ({ action: "decline" }) })
    expect(await declining.callTool("ask")).toMatchObject({ content: [{ text: "decline" }] })
  })

  it("about models and folders are answered, too", async () => {
    const server = new AsyncServer({ name: "s", version: "1.0.0" })
      .tool("model", {}, async (_, { sample }) => {
        const { content } = await sample({ messages: "Hi", maxTokens: 10 })
        return JSON.stringify(content)
      })
      .tool("folders", {}, async (_, { roots }) => (await roots()).map(({ uri }) => uri).join())
    const client = await connect(server.transport(), {
      sample: ({ maxTokens }) => ({
        role: "assistant",
        model: "test",
        content: { type: "text", text: `${maxTokens}` }
      }),
      roots: async ({ label }) => [{ uri: `file:///${label}` }],
      label: "home"
    })
    expect(await client.callTool("model")).toMatchObject({ content: [{ text: expect.stringContaining("10") }] })
    expect(await client.callTool("folders")).toMatchObject({ content: [{ text: "file:///home" }] })
    const refusing = await connect(server.transport(), {
      sample: () => {
        throw new SamplingRefused({ message: "not now" })
      }
    })
    expect(await failureOf(refusing.callTool("model"))).toMatchObject({ reason: { _tag: "InputRefused" } })
    expect(await failureOf(AsyncClient.connect(server.transport(), { roots: [{ uri: "https://x" }] })))
      .toBeInstanceOf(InvalidRoot)
  })
})

describe("middleware", () => {
  it("changes calls, refuses them and measures them", async () => {
    const methods: Array<string> = []
    const client = await connect(shop().transport(), {
      middleware: [
        middleware(async (call, next) => {
          methods.push(call.method.name)
          return next()
        }),
        middleware(async (call, next) => {
          if (isToolCall(call, "fail")) deny("Not here")
          return isToolCall(call, "sum")
            ? next({ ...call, params: { ...call.params, arguments: { ...call.params.arguments, a: 10 } } })
            : next()
        })
      ]
    })
    expect(await client.callTool("sum", { a: 1, b: 2 })).toMatchObject({ structuredContent: { sum: 12 } })
    const error = await failureOf(client.callTool("fail"))
    expect(error).toBeInstanceOf(ClientError)
    expect(error).toMatchObject({ message: "Not here", reason: { _tag: "Denied" } })
    expect(methods).toEqual(["tools/call", "tools/call"])
  })

  it("is refused if it is a function that middleware has not made", async () => {
    const plain = (async (_: unknown, next: () => unknown) => next()) as unknown as ReturnType<typeof middleware>
    const error = await failureOf(AsyncClient.connect(shop().transport(), { middleware: [plain] }))
    expect(error).toBeInstanceOf(TypeError)
    expect(error).toMatchObject({ message: expect.stringContaining("middleware(async (call, next) => …)") })
  })
})

/** Starts a server over HTTP that records the headers of its requests, and refuses a wrong token. */
const guarded = async (token: () => string) => {
  const seen: Array<string | undefined> = []
  const server = createServer((request, response) => {
    seen.push(request.headers.authorization ?? String(request.headers["x-key"]))
    response.writeHead(request.headers.authorization === `Bearer ${token()}` ? 503 : 401).end()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closing.push(() =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  )
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` }
}

describe("credentials", () => {
  it("bearer sends a token, and asks its function once more after a refusal", async () => {
    const tokens = ["old", "new", "new", "new"]
    const { seen, url } = await guarded(() => "new")
    await failureOf(AsyncClient.connect({ url, credentials: bearer(() => tokens.shift()!) }))
    expect(seen.slice(0, 2)).toEqual(["Bearer old", "Bearer new"])
    seen.length = 0
    expect(await failureOf(AsyncClient.connect({ url, credentials: bearer("old") })))
      .toMatchObject({ reason: { _tag: "Unauthorized", status: 401 } })
    expect(seen).toEqual(["Bearer old"])
  })

  it("credentials adds headers, and decides about refusals", async () => {
    const { seen, url } = await guarded(() => "none")
    const refusals: Array<number> = []
    const error = await failureOf(AsyncClient.connect({
      url,
      credentials: credentials({
        headers: async ({ method }) => ({ "x-key": `${method} ${refusals.length}` }),
        refused: async ({ attempt }) => {
          refusals.push(attempt)
          return attempt === 1
        }
      })
    }))
    expect(error).toMatchObject({ reason: { _tag: "Unauthorized" } })
    expect(seen).toEqual(["POST 0", "POST 1"])
    expect(refusals).toEqual([1, 2])
  })

  it("headers of a function are requested for each request", async () => {
    const { seen, url } = await guarded(() => "none")
    await failureOf(AsyncClient.connect({ url, headers: async () => ({ "x-key": "mine" }) }))
    expect(seen).toEqual(["mine"])
  })
})

describe("caches", () => {
  const counting = () => {
    let count = 0
    return new AsyncServer({ name: "s", version: "1.0.0" })
      .resource("a://b", { ttlMs: 60_000, cacheScope: "public" }, () => `${++count}`)
  }
  const read = async (client: AsyncClient) => {
    const { contents: [content] } = await client.readResource("a://b")
    return (content as { readonly text: string }).text
  }

  it("share responses between clients, in memory or in a store of async functions", async () => {
    const entries = new Map<string, StoredResponse>()
    const stores = [
      responseCache({ maxEntries: 10 }),
      responseStore({
        get: async (key) => entries.get(JSON.stringify(key)),
        set: async (key, entry) => entries.set(JSON.stringify(key), entry),
        invalidate: async () => entries.clear()
      })
    ]
    for (const store of stores) {
      const server = counting()
      const cache = { store, server: "https://example.com/mcp" }
      const [one, two] = [await connect(server.transport(), { cache }), await connect(server.transport(), { cache })]
      expect([await read(one), await read(two)]).toEqual(["1", "1"])
      const alone = await connect(server.transport(), { cache: false })
      expect([await read(alone), await read(alone)]).toEqual(["2", "3"])
    }
    expect(entries.size).toBe(1)
  })
})

describe("toolkits", () => {
  it("have the tools of a client in the form of a provider", async () => {
    const client = await connect(shop().transport())
    const { call, instructions, tools } = await client.toolkit({
      include: (_, { name }) => name !== "wait",
      override: (_, { name }) => name === "sum" ? { name: "add" } : undefined,
      schemas: "gemini"
    })
    expect(tools.map(({ name }) => name)).toEqual(["add", "fail", "ask"])
    expect(instructions).toContain("Buy tea.")
    expect(await call("add", { a: 1, b: 2 })).toMatchObject({ structuredContent: { sum: 3 } })
    expect(await call("fail")).toMatchObject({ isError: true })
    const error = await failureOf(call("none"))
    expect(error).toBeInstanceOf(PoolError)
    expect(error).toMatchObject({ reason: { _tag: "ToolNotFound", tool: "none" } })
    const [{ inputSchema, name, description }] = tools as [typeof tools[number]]
    expect(estimateTokens({ name, description, inputSchema })).toBeGreaterThan(5)
    const fitted = fitSchema({ type: "object", properties: { "a b": { type: "string" } } }, "anthropic")
    expect(fitted.changes).toHaveLength(1)
    const [renamed] = Object.keys(fitted.schema["properties"] as object)
    expect(fitted.restore({ [renamed!]: "x" })).toEqual({ "a b": "x" })
  })
})

describe("tasks of servers", () => {
  const tea = Task.async(Task.make("tea", { input: z.object({ cups: z.int() }) }), async ({ cups }, { sleep }) => {
    await sleep("steep", cups * 10)
    return `${cups} cups`
  })
  const server = () =>
    new CoreServer({ name: "tea", version: "1.0.0" })
      .use(Layer.provide(Layer.merge(tea, Tasks.layer()), MemoryTasks.layer({ pollInterval: "100 millis" })))
      .transport() as unknown as Transport

  it("are awaited, followed, resumed and cancelled", async () => {
    const client = await connect(server())
    const handles: Array<TaskHandle> = []
    const task = { onTask: ({ handle }: RemoteTask) => void handles.push(handle) }
    expect(await client.callTool("tea", { cups: 2 }, { task })).toMatchObject({ content: [{ text: "2 cups" }] })
    const started = await client.startTask("tea", { cups: 1 })
    if (started._tag !== "RemoteTask") return expect(started._tag).toBe("RemoteTask")
    const states: Array<string> = []
    for await (const { status } of started.states()) states.push(status)
    expect(states.at(-1)).toBe("completed")
    const resumed = await client.resumeTask(JSON.parse(JSON.stringify(handles[0])))
    expect(await resumed.result()).toMatchObject({ content: [{ text: "2 cups" }] })
    const long = await client.startTask("tea", { cups: 100_000 })
    if (long._tag !== "RemoteTask") return expect(long._tag).toBe("RemoteTask")
    await long.cancel()
    expect(await failureOf(long.result())).toMatchObject({ reason: { _tag: "TaskCancelled" } })
  })

  it("are not made of tools that answer at once", async () => {
    const client = await connect(shop().transport())
    const started = await client.startTask("sum", { a: 1, b: 2 })
    expect(started._tag).toBe("Finished")
    expect(await started.result()).toMatchObject({ structuredContent: { sum: 3 } })
  })
})
