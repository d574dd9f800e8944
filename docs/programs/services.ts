import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

class Notes extends Context.Service<Notes, {
  readonly add: (text: string) => Effect.Effect<number>
  readonly all: Effect.Effect<ReadonlyArray<string>>
}>()("Notes") {
  static readonly layer = Layer.sync(Notes, () => {
    const notes: Array<string> = []
    return { add: (text) => Effect.sync(() => notes.push(text)), all: Effect.sync(() => notes.slice()) }
  })
}

const add = Tool.layer(
  Tool.make("add", { input: { text: Schema.String }, output: { count: Schema.Int } }),
  ({ text }) => Effect.map(Effect.flatMap(Notes, (notes) => notes.add(text)), (count) => ({ count }))
)

const all = Resource.layer(
  Resource.make("notes://all", { mimeType: "text/plain" }),
  Effect.map(Effect.flatMap(Notes, ({ all }) => all), (notes) => notes.join("\n"))
)

// Both share one `Notes`, which is built and closed with the server. Without this layer, running `Notebook` is a type error.
export const Notebook = McpServer.layer({ name: "notebook", version: "1.0.0" }, add, all).pipe(
  Layer.provide(Notes.layer)
)
