/**
 * Start-up: the modules that a server and a client load before they do any work. Resolving and reading modules takes
 * most of that time.
 *
 * Each case runs a program of public modules in two phases. `absent` are modules that the first phase must not load.
 * `later` is the least number of Skein's modules that only the second phase loads, so that a lazy import that becomes
 * eager fails the test.
 */
import { describe, expect, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"

interface Case {
  readonly title: string
  readonly first: string
  readonly absent: ReadonlyArray<RegExp>
  readonly second: string
  readonly later: number
  /** Modules that the second phase must load. */
  readonly present?: ReadonlyArray<RegExp>
}

/** A public module of a package. */
const skein = (...modules: ReadonlyArray<string>): RegExp =>
  new RegExp(`/packages/\\w+/src/(${modules.join("|")})\\.ts$`, "m")

const effectStreams = /\/effect\/\w+\/(Stream|Channel|Queue|Logger)\./

const load = (...modules: ReadonlyArray<string>): string =>
  modules.map((module) => `await import("@skein/${module}")`).join("\n")

/**
 * A client of a server with a plain tool, a tool with an output schema, and `run`, which runs an effect with the
 * client.
 */
const connected = `
  const [Client, InMemoryTransport, Tool, McpServer, Effect, Layer, Context, Schema] = await Promise.all([
    "@skein/client/Client", "@skein/server/InMemoryTransport", "@skein/server/Tool", "@skein/server/McpServer",
    "effect/Effect", "effect/Layer", "effect/Context", "effect/Schema"
  ].map((name) => import(name)))
  const server = McpServer.layer(
    { name: "s", version: "1" },
    Tool.layer(Tool.make("plain"), () => Effect.succeed("ok")),
    Tool.layer(Tool.make("typed", { output: { n: Schema.Int } }), () => Effect.succeed({ n: 1 }))
  )
  const run = (use) => Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const { serve } = Context.get(yield* Layer.build(server), McpServer.McpServer)
    return yield* use(yield* Client.make(InMemoryTransport.transport(serve)))
  })))
`

/** A server, written by hand, whose input requests may be tasks (2025-11-25). */
const samplingPeer = `
  const [Client, Sampling, InMemoryTransport, Effect] = await Promise.all([
    "@skein/client/Client", "@skein/client/Sampling", "@skein/runtime/InMemoryTransport", "effect/Effect"
  ].map((name) => import(name)))
  const result = { role: "assistant", model: "m", content: { type: "text", text: "x" } }
  const requestMessage = (params) => Effect.runPromise(Effect.scoped(Effect.gen(function*() {
    const [one, other] = yield* InMemoryTransport.make()
    let answered
    other.open({ end: () => {}, message: (message) => {
      if (message.method === "initialize") other.send({ _tag: "Success", id: message.id, result: {
        protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } } })
      if (message.id === "q") answered()
    } })
    yield* Client.make({ connect: Effect.succeed(one) }, { revisions: ["2025-11-25"] })
    yield* Effect.promise(() => new Promise((resolve) => {
      answered = resolve
      other.send({ _tag: "Request", id: "q", method: "sampling/createMessage", params: { messages: [], maxTokens: 1, ...params } })
    }))
  })).pipe(Effect.provide(Sampling.layer(() => Effect.succeed(result)))))
`

/** A server that listens on HTTP, with these options. */
const listening = `
  const [NodeHttp, McpServer, Effect, Layer] = await Promise.all([
    "@skein/server/NodeHttp", "@skein/server/McpServer", "effect/Effect", "effect/Layer"
  ].map((name) => import(name)))
  const server = McpServer.layer({ name: "s", version: "1" })
  const listen = (options) =>
    Effect.runPromise(Effect.scoped(Layer.build(Layer.provide(NodeHttp.layer({ port: 0, ...options }), server))))
`

/** A server of async functions on stdio that has answered `initialize`. `answer` waits for its next message. */
const initialized = `
  const [{ AsyncServer }, { PassThrough }] = await Promise.all([
    "@skein/server/AsyncServer", "node:stream"
  ].map((name) => import(name)))
  const jsonSchema = { input: () => ({ type: "object" }), output: () => ({}) }
  const input = { "~standard": { version: 1, vendor: "v", validate: (value) => ({ value }), jsonSchema } }
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const answer = () => new Promise((resolve) => stdout.once("data", resolve))
  new AsyncServer({ name: "s", version: "1" }).tool("t", { input }, () => "").runStdio({ input: stdin, output: stdout })
  stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",' +
    '"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\\n')
  await answer()
`

const cases: ReadonlyArray<Case> = [
  {
    title: "a server loads the validation of JSON Schema with the module JsonSchema",
    first: load("server/Tool", "server/StandardSchema", "server/McpServer", "server/Stdio"),
    absent: [],
    second: load("server/JsonSchema"),
    later: 5
  },
  {
    title: "a server on stdio loads neither HTTP, URI templates nor Effect's streams",
    first: load("server/Tool", "server/McpServer", "server/Stdio"),
    absent: [skein("Http", "NodeHttp", "WebHttp", "HttpRoutes", "UriTemplate"), effectStreams],
    second: load("server/NodeHttp"),
    later: 10,
    present: [skein("NodeHttp")]
  },
  {
    title: "a server on stdio answers initialize before it loads the schemas of messages",
    first: initialized,
    absent: [
      /\/effect\/\w+\/Schema/,
      skein("Codec", "Method"),
      skein("Resource", "ResourceTemplate", "Prompt", "Tool")
    ],
    second: `
      stdin.write('{"jsonrpc":"2.0","id":2,"method":"ping"}\\n')
      await answer()
      process.exit(0)
    `,
    later: 30,
    present: [skein("Codec"), skein("Method")]
  },
  {
    title: "a server of async functions loads the modules of definitions that it has",
    first: load("server/AsyncServer"),
    absent: [/\/effect\/\w+\/Schema/, skein("Resource", "ResourceTemplate", "Prompt", "Tool")],
    second: `
      const [{ AsyncServer }, Effect, Layer, Schema] = await Promise.all([
        "@skein/server/AsyncServer", "effect/Effect", "effect/Layer", "effect/Schema"
      ].map((name) => import(name)))
      const server = new AsyncServer({ name: "s", version: "1" }).tool("t", { input: { n: Schema.Int } }, () => "")
        .resource("a:b", {}, () => "").template("a:{b}", { name: "b" }, () => "").prompt("p", {}, () => "")
      await Effect.runPromise(Effect.scoped(Layer.build(server.toLayer())))
    `,
    later: 5,
    present: [skein("Resource"), skein("ResourceTemplate"), skein("Prompt"), skein("Tool")]
  },
  {
    title: "a server on HTTP loads neither the other transports nor Effect's streams",
    first: load("server/Tool", "server/McpServer", "server/NodeHttp"),
    absent: [skein("Stdio", "WebHttp", "HttpConfig", "HttpRoutes"), effectStreams],
    second: load("server/Stdio"),
    later: 2
  },
  {
    title: "a server on HTTP that listens loads Effect's router with the module NodeRoutes",
    first: `${listening}\nawait listen({ health: true })`,
    absent: [
      skein("HttpConfig", "HttpRoutes", "NodeRoutes"),
      /@effect\/platform-node/,
      /\/http\/HttpRouter\./,
      effectStreams
    ],
    second: load("server/NodeRoutes"),
    later: 1,
    present: [skein("NodeRoutes"), /\/NodeHttpServer\./]
  },
  {
    title: "a client loads the validation of results with the first output schema",
    first: `${connected}\nawait run((client) => client.callTool("plain"))`,
    absent: [],
    second: `await run((client) => Effect.andThen(client.listTools(), client.callTool("typed")))`,
    later: 5
  },
  {
    title: "a client loads the code that follows tasks with the first task",
    first: `${connected}\nawait run((client) => client.callTool("plain"))`,
    absent: [],
    second: `await run((client) => Effect.exit(client.resumeTask({ taskId: "t" })))`,
    later: 4
  },
  {
    title: "a client loads effect/ai when a toolkit is used",
    first: `const { toolkit } = await import("@skein/client/Client"); toolkit({})`,
    absent: [skein("Toolkit"), /\/effect\/\w+\/ai\//],
    second: `const { runPromise } = await import("effect/Effect"); await runPromise(toolkit({}))`,
    later: 1,
    present: [skein("Toolkit"), /\/effect\/\w+\/ai\/Tool\./]
  },
  {
    title: "2025-11-25 · a client loads the code that stores its tasks with the first task",
    first: `${samplingPeer}\nawait requestMessage({})`,
    absent: [],
    second: `await requestMessage({ task: {} })`,
    later: 1
  }
]

const mark = "-- second phase"

/** The URLs of the modules that each phase of a program loads. */
const modulesOf = ({ first, second }: Case): readonly [first: string, second: string] => {
  // A server on stdio redirects `console.log`.
  const hooks = `
    const [{ registerHooks }, { writeSync }] = await Promise.all([import("node:module"), import("node:fs")])
    const print = (line) => void writeSync(1, line + "\\n")
    registerHooks({ load: (url, context, next) => (print(url), next(url, context)) })
  `
  const program = [hooks, first, `print("${mark}")`, second].join("\n")
  const flags = ["--conditions=@skein/source", "--input-type=module", "--eval", program]
  const [before = "", after = ""] = execFileSync(process.execPath, flags, { encoding: "utf8" }).split(`${mark}\n`)
  return [before, after]
}

const ofSkein = (modules: string): ReadonlyArray<string> =>
  modules.split("\n").filter((url) => /\/packages\/\w+\/src\//.test(url))

describe("start-up", () => {
  for (const one of cases) {
    it(one.title, () => {
      const [before, after] = modulesOf(one)
      expect(ofSkein(before).length).toBeGreaterThan(0)
      for (const pattern of one.absent) expect(before).not.toMatch(pattern)
      for (const pattern of one.present ?? []) expect(after).toMatch(pattern)
      expect(ofSkein(after).length).toBeGreaterThanOrEqual(one.later)
    })
  }
})
