/** A remote server with everything that a proxy passes on. */
import * as McpError from "@skein/protocol/McpError"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as Elicitation from "@skein/server/Elicitation"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Logging from "@skein/server/Logging"
import * as McpServer from "@skein/server/McpServer"
import { once } from "@skein/server/Once"
import * as Progress from "@skein/server/Progress"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

/** The events at the remote server. Each line is also passed to the argument. */
export class Log {
  readonly lines: Array<string> = []
  readonly #write: (line: string) => void
  constructor(write: (line: string) => void = () => {}) {
    this.#write = write
  }
  readonly add = (line: string): Effect.Effect<void> =>
    Effect.sync(() => {
      this.lines.push(line)
      this.#write(line)
    })
  count(line: string): number {
    return this.lines.filter((other) => other === line).length
  }
}

/** A schema that Skein's own schemas cannot express. */
export const rawSchema = {
  type: "object",
  properties: { a: { type: "number" }, b: { type: "number" } },
  required: ["a"],
  if: { properties: { a: { const: 0 } } },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ["b"] },
  "x-vendor": { kept: true }
} as const

const form = { name: Schema.String }

export const remote = (
  log: Log = new Log(),
  ...more: ReadonlyArray<McpServer.Definitions>
): Layer.Layer<McpServer.McpServer, unknown> =>
  McpServer.layer(
    { name: "remote", version: "2.0.0" },
    Tool.layer(
      Tool.make("raw", {
        title: "Raw",
        description: "Has a raw schema",
        input: JsonSchema.make(rawSchema),
        annotations: { readOnlyHint: true },
        icons: [{ src: "https://icons.example/raw.png" }],
        _meta: { "x.example/kept": 1 }
      }),
      (args) => Effect.succeed(`${JSON.stringify(args)}`)
    ),
    Tool.layer(
      Tool.make("structured", { output: { sum: Schema.Number } }),
      () => Effect.succeed(Tool.result({ structured: { sum: 3 }, content: "three", _meta: { "x.example/r": true } }))
    ),
    Tool.layer(Tool.make("failing"), () => Effect.succeed(Tool.result({ content: "No", isError: true }))),
    Tool.layer(Tool.make("refusing"), () => Effect.fail(McpError.other(1234, "Refused", { why: ["x"] }))),
    Tool.layer(Tool.make("meta"), () =>
      Effect.map(McpRequest, ({ params }) => {
        const { "x.example/sent": sent, "io.modelcontextprotocol/related-task": task } =
          (params?.["_meta"] ?? {}) as Record<string, unknown>
        return JSON.stringify({ sent, task })
      })),
    Tool.layer(Tool.make("noisy"), () =>
      Effect.gen(function*() {
        yield* Progress.report({ progress: 1, total: 2 })
        yield* Logging.named("engine")(Effect.logWarning("hot"))
        yield* Progress.report({ progress: 2, total: 2 })
        return "done"
      })),
    Tool.layer(Tool.make("slow"), () =>
      Effect.onInterrupt(
        Effect.andThen(log.add("slow began"), Effect.never as Effect.Effect<string>),
        () => log.add("slow interrupted")
      )),
    Tool.layer(Tool.make("ask"), () =>
      Effect.gen(function*() {
        yield* log.add("ask began")
        yield* once("reserve", Schema.Null, Effect.as(log.add("reserved"), null))
        const first = yield* Elicitation.form("Who?", form, { key: "who" })
        const second = yield* Elicitation.form("And who else?", form, { key: "else" })
        return JSON.stringify([first, second])
      }).pipe(Effect.onInterrupt(() => log.add("ask interrupted")))),
    Tool.layer(Tool.make("suggest"), () =>
      Effect.match(Elicitation.form("Who?", form), {
        onFailure: () => "nobody was asked",
        onSuccess: ({ action }) => action
      })),
    Tool.layer(Tool.make("visit"), () =>
      Effect.map(Elicitation.url("Log in", "https://shop.example/login"), ({ action }) => action)),
    Tool.layer(Tool.make("sample"), () =>
      Effect.map(Sampling.createMessage({ messages: "A tea", maxTokens: 5 }), Sampling.text)),
    Tool.layer(Tool.make("roots"), () =>
      Effect.map(Roots.list(), (roots) =>
        roots.map(({ uri }) =>
          uri
        ).join())),
    Tool.layer(Tool.make("all"), () =>
      Effect.map(
        Effect.all([
          Effect.map(Elicitation.form("Who?", form), ({ action }) => action),
          Effect.map(Sampling.createMessage({ messages: "A tea", maxTokens: 5 }), Sampling.text),
          Effect.map(Roots.list(), (roots) => String(roots.length))
        ], { concurrency: "unbounded" }),
        (parts) => parts.join(" ")
      )),
    Tool.layer(Tool.make("link"), () =>
      Effect.succeed([{ type: "resource_link", uri: "hidden://1", name: "hidden" }] as never)),
    Resource.layer(Resource.make("notes://today", { name: "today", mimeType: "text/plain" }), Effect.succeed("tea")),
    Resource.layer(
      Resource.make("hidden://1", {
        name: "hidden",
        visible: () =>
          true
      }),
      Effect.succeed("secret")
    ),
    ResourceTemplate.layer(
      ResourceTemplate.make("notes://{day}", { name: "day", variables: { day: Schema.String } }),
      ({ day }) => day === "never" ? Resource.notFound("notes://never") : Effect.succeed(`day ${day}`),
      { complete: { day: (value) => Array.from({ length: 150 }, (_, n) => `${value}${n}`) } }
    ),
    Prompt.layer(
      Prompt.make("review", { description: "Reviews", arguments: { code: Schema.String } }),
      ({ code }) => Effect.succeed(`Review ${code}`),
      { complete: { code: ["tea", "coffee"] } }
    ),
    Prompt.layer(
      Prompt.make("asking"),
      () => Effect.map(Elicitation.form("Who?", form, { key: "who" }), (answer) => JSON.stringify(answer))
    ),
    Tool.layer(
      Tool.make("touch", { input: { uri: Schema.String } }),
      ({ uri }) => Effect.as(Catalog.updated(uri), "touched")
    ),
    ...more
  ) as Layer.Layer<McpServer.McpServer, unknown>
