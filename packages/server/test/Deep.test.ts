/** Lines that are nested deeper than the stack: each request is answered, and so is the one after it. */
import { expect, it } from "@effect/vitest"
import * as NodeStreams from "@skein/runtime/NodeStreams"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { PassThrough } from "node:stream"
import { createInterface } from "node:readline"
import * as kit from "./kit.ts"

interface Chain {
  readonly a?: Chain
}
const Chain: Schema.Codec<Chain> = Schema.Struct({
  a: Schema.optionalKey(Schema.suspend((): Schema.Codec<Chain> => Chain))
})
const any = { x: Schema.Unknown }

const server = kit.server(
  Tool.layer(Tool.make("text", { input: { x: Schema.String } }), () => Effect.void),
  Tool.layer(Tool.make("any", { input: any }), () => Effect.void),
  Tool.layer(Tool.make("json", { input: { x: Schema.Json } }), () => Effect.void),
  Tool.layer(Tool.make("chain", { input: { x: Chain } }), () => Effect.void),
  Tool.layer(Tool.make("echo", { input: any, output: any }), (input) => Effect.succeed(input)),
  Prompt.layer(Prompt.make("p", { arguments: { x: Schema.String } }), () => Effect.succeed("said"))
)

/** Sends lines, each with an id, and returns the outcome of each: a code, or `result`. */
const ask = (lines: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const context = yield* Effect.orDie(Layer.build(server))
    const [input, output] = [new PassThrough(), new PassThrough()]
    const answers = createInterface({ input: output })[Symbol.asyncIterator]()
    yield* Effect.flatMap(NodeStreams.make(input, output), (connection) =>
      Effect.flatMap(McpServer.McpServer, (server) => server.serve(connection))).pipe(Effect.provide(context))
    const seen: Array<unknown> = []
    for (const line of lines) {
      input.write(`${line}\n`)
      const { value } = yield* Effect.promise(() =>
        answers.next()
      )
      const { error } = JSON.parse(value!)
      seen.push(error?.code ?? "result")
    }
    return seen
  })

const depth = 100_000
const lists = "[".repeat(depth) + "]".repeat(depth)
const chain = "{\"a\":".repeat(depth) + "{}" + "}".repeat(depth)

it.effect("2025-11-25 · reads, refuses or answers values nested 100,000 deep, and serves the next request", () =>
  kit.logged((logged) =>
    Effect.gen(function*() {
      let id = 0
      const line = (method: string, params: string) =>
        `{"jsonrpc":"2.0","id":${++id},"method":"${method}","params":${params}}`
      const call = (name: string, x: string) => line("tools/call", `{"name":"${name}","arguments":{"x":${x}}}`)
      const hello = line("initialize", JSON.stringify(kit.hello("2025-11-25")))
      const seen = yield* ask([
        hello,
        ...[lists, chain].flatMap((x) => ["text", "any", "json", "chain", "echo"].map((name) => call(name, x))),
        line("prompts/get", `{"name":"p","arguments":{"x":${lists}}}`),
        line("resources/read", `{"uri":${lists}}`),
        line("tools/list", `{"_meta":${chain}}`),
        line("tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":${lists}}}`),
        line("initialize", chain),
        line("ping", chain),
        lists,
        chain,
        call("text", "\"a\"")
      ])
      expect(seen).toEqual([
        "result",
        // Bad arguments are a result with `isError`, and so is a result that cannot be encoded.
        ...["result", "result", "result", "result", "result"],
        ...["result", "result", "result", "result", "result"],
        ...[-32602, -32601, "result", -32602, -32602, "result", -32600, -32600],
        "result"
      ])
      expect(logged.filter((text) => text.includes("RangeError"))).toEqual([])
    })
  ))
