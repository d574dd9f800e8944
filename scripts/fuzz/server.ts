/** A server with every feature that reads messages of a client. */
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as MemoryTasks from "@skein/tasks/MemoryTasks"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTools from "@skein/tasks/TaskTools"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { z } from "zod"
import { Bounds, fixedBounds } from "../../packages/server/src/internal/base/fixedBounds.ts"

interface Chain {
  readonly a?: Chain
}
const Chain: Schema.Codec<Chain> = Schema.Struct({
  a: Schema.optionalKey(Schema.suspend((): Schema.Codec<Chain> => Chain))
})

interface Lists extends ReadonlyArray<Lists> {}
const Lists: Schema.Codec<Lists> = Schema.Array(Schema.suspend((): Schema.Codec<Lists> => Lists))

interface ZodChain {
  readonly a?: ZodChain | undefined
}
const ZodChain: z.ZodType<ZodChain> = z.lazy(() => z.object({ a: ZodChain.optional() }))

const any = { x: Schema.Unknown }
const optional = { x: Schema.optionalKey(Schema.Unknown) }

// A failed input request is an answer of the tool, with the message for the model.
const asked = <A, R>(ask: Effect.Effect<A, { readonly message: string }, R>) =>
  Effect.match(ask, { onFailure: (error) => `not answered: ${error.message}`, onSuccess: () => "answered" })

const form = Elicitation.form("Which?", {
  name: Schema.String,
  count: Schema.optionalKey(Schema.Int),
  day: Schema.optionalKey(Elicitation.Day),
  which: Schema.optionalKey(Elicitation.choice({ a: "A", b: "B" })),
  several: Schema.optionalKey(Elicitation.choices({ a: "A", b: "B" }))
}, { timeout: "1 second" })
const plainForm = Elicitation.form("Which?", { name: Schema.String }, { timeout: "1 second", task: {} })
const visit = Elicitation.url("Please pay", "https://example.com/pay", { key: "pay", timeout: "1 second" })
const model = Sampling.createMessage({ messages: "Say something", maxTokens: 10 }, { timeout: "1 second" })
const modelWithTools = Sampling.createMessage({
  messages: "Say something",
  maxTokens: 10,
  includeContext: "thisServer",
  tools: [{ name: "t", inputSchema: { type: "object" } }]
}, { timeout: "1 second" })
const places = Roots.list({ timeout: "1 second" })
const everything = Effect.all([asked(plainForm), asked(model), asked(places)], { concurrency: "unbounded" })

/** The names of the tools. Each call has at most one argument, `x`. */
export const toolNames: ReadonlyArray<string> = [
  "chain",
  "lists",
  "union",
  "record",
  "zod",
  "zodAny",
  "json",
  "any",
  "echo",
  "echoText",
  "header",
  "form",
  "plainForm",
  "visit",
  "model",
  "modelWithTools",
  "places",
  "everything",
  "task",
  "asking",
  "progress"
]

const tools = Layer.mergeAll(
  Tool.layer(Tool.make("chain", { input: { x: Chain } }), () => Effect.succeed("read")),
  Tool.layer(Tool.make("lists", { input: { x: Lists } }), () => Effect.succeed("read")),
  Tool.layer(
    Tool.make("union", {
      input: { x: Schema.Union([Chain, Lists, Schema.FiniteFromString, Schema.Date, Schema.URL]) }
    }),
    () => Effect.succeed("read")
  ),
  Tool.layer(
    Tool.make("record", { input: { x: Schema.Record(Schema.String, Schema.NullOr(Chain)) } }),
    () => Effect.succeed("read")
  ),
  Tool.layer(Tool.make("zod", { input: z.object({ x: ZodChain }) }), () => Effect.succeed("read")),
  Tool.layer(Tool.make("zodAny", { input: z.object({ x: z.json() }) }), () => Effect.succeed("read")),
  Tool.layer(
    Tool.make("json", {
      input: JsonSchema.make({
        type: "object",
        properties: { x: { $ref: "#/$defs/chain" } },
        $defs: {
          chain: {
            anyOf: [
              { type: "object", properties: { a: { $ref: "#/$defs/chain" } } },
              { type: "array", items: { $ref: "#/$defs/chain" }, uniqueItems: true },
              { type: "string", pattern: "^(a|b)*$", format: "date-time" },
              { type: "number", multipleOf: 0.1 }
            ]
          }
        }
      })
    }),
    () => Effect.succeed("read")
  ),
  Tool.layer(Tool.make("any", { input: optional }), () => Effect.succeed("read")),
  Tool.layer(Tool.make("echo", { input: any, output: any }), (input) => Effect.succeed(input)),
  Tool.layer(Tool.make("echoText", { input: { x: Schema.String } }), ({ x }) => Effect.succeed(x)),
  Tool.layer(
    Tool.make("header", { input: { x: Schema.optionalKey(Schema.String.annotate({ "x-mcp-header": "X" })) } }),
    () => Effect.succeed("read")
  ),
  Tool.layer(Tool.make("form"), () => asked(form)),
  Tool.layer(Tool.make("plainForm"), () => asked(plainForm)),
  Tool.layer(Tool.make("visit"), () => asked(visit)),
  Tool.layer(Tool.make("model"), () => asked(model)),
  Tool.layer(Tool.make("modelWithTools"), () => asked(modelWithTools)),
  Tool.layer(Tool.make("places"), () => asked(places)),
  Tool.layer(Tool.make("everything"), () => Effect.map(everything, (answers) => answers.join("\n"))),
  Tool.layer(
    Tool.make("progress"),
    () => Effect.as(Effect.andThen(Progress.report({ progress: 1 }), Catalog.updated("test://page/1")), "reported")
  ),
  Task.layer(Task.make("task", { input: optional }), () => Effect.succeed("done")),
  Task.layer(Task.make("asking"), () => asked(plainForm))
)

const features = Layer.mergeAll(
  Prompt.layer(
    Prompt.make("prompt", {
      arguments: { x: Schema.optionalKey(Schema.String), n: Schema.optionalKey(Schema.FiniteFromString) }
    }),
    () => Effect.succeed("said"),
    { complete: { x: ["a", "b"] } }
  ),
  Prompt.layer(Prompt.make("asking"), () => asked(plainForm)),
  Resource.layer(Resource.make("test://page/1"), Effect.succeed("one")),
  Resource.layer(Resource.make("test://asking"), asked(plainForm)),
  ResourceTemplate.layer(
    ResourceTemplate.make("test://item/{id}{?q,r*}", { name: "item" }),
    ({ id }) => Effect.succeed(`item ${id}`),
    { complete: { id: ["10", "11"] } }
  )
)

/** Makes the server. Its loggers are the given ones. */
export const make = (logger: Logger.Logger<unknown, void>) =>
  McpServer.layer(
    {
      name: "fuzzed",
      version: "1.0.0",
      pageSize: 3,
      limits: { timeout: "1 second", shutdownTimeout: 0 }
    },
    tools,
    features,
    TaskTools.layer(),
    Tasks.layer({ pollInterval: "10 millis", list: "always", pageSize: 5, ttl: "2 seconds", maxTtl: "5 seconds" })
  ).pipe(
    Layer.provide(MemoryTasks.layer()),
    Layer.provide(Logger.layer([logger])),
    Layer.provide(Layer.succeed(Bounds, { ...fixedBounds, listChangedDelay: 0 }))
  )
