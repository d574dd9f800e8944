import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import * as McpServer from "@skein/server/McpServer"
import * as PerSession from "@skein/server/PerSession"
import * as SqlStateStore from "@skein/server/SqlStateStore"
import * as State from "@skein/server/State"
import * as StateStore from "@skein/server/StateStore"
import * as Tool from "@skein/server/Tool"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as Schema from "effect/Schema"
import { z } from "zod"
import * as Kettle from "./kettle.ts"

// #region cart
const Item = Schema.Struct({ tea: Schema.String, cups: Schema.Int })

// One value for each user. It is stored as JSON.
const cart = State.make("cart", { schema: Schema.Array(Item), initial: [], lifetime: "1 hour" })

const order = Tool.layer(
  Tool.make("order", { input: Item, output: { items: Schema.Int } }),
  (item) => Effect.map(cart.update((items) => [...items, item]), (items) => ({ items: items.length }))
)

const checkout = Tool.layer(
  Tool.make("checkout"),
  () => Effect.map(cart.modify((items) => [items, []]), (items) => `${items.length} items are on their way`)
)
// #endregion

// One value for each session, or for each user where there are no sessions.
const visits = State.make("visits", { schema: z.int(), initial: 0, scope: "session", stateless: "user" })

const greet = Tool.async(Tool.make("greet"), async (_, { state }) => {
  const count = await state(visits).update((n) => n + 1)
  return count === 1 ? "Welcome" : `Welcome back, for the ${count}. time`
})

// #region perSession
// A folder of each session: deleted when the session ends, however it ends.
const notes = PerSession.make("notes", {
  acquire: Effect.flatMap(FileSystem.FileSystem, (files) => files.makeTempDirectoryScoped({ prefix: "notes-" })),
  max: 200
})

const note = Tool.layer(
  Tool.make("note", { input: { text: Schema.String } }),
  ({ text }) =>
    notes.use((folder) =>
      Effect.gen(function*() {
        const files = yield* FileSystem.FileSystem
        yield* files.writeFileString(`${folder}/${yield* Clock.currentTimeMillis}.txt`, text)
        return `${(yield* files.readDirectory(folder)).length} notes`
      })
    )
)
// #endregion

const kettle = PerSession.async("kettle", {
  acquire: () => Kettle.plugIn(),
  release: (kettle) => kettle.unplug()
})

const boil = Tool.async(Tool.make("boil"), async (_, { use }) => {
  const own = await use(kettle)
  return own.boil()
})

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)
const definitions = [order, checkout, greet, note.pipe(Layer.provide(files)), boil] as const

/** In memory, with the default bounds. */
export const TeaShop = McpServer.layer({ name: "tea-shop", version: "1.0.0" }, ...definitions)

// #region sql
// The carts are in the database of the application, for all processes of the server. PgClient works as well.
export const shared = (filename: string) =>
  McpServer.layer({ name: "tea-shop", version: "1.0.0" }, ...definitions).pipe(
    Layer.provide(SqlStateStore.layer({ namespace: "tea-shop" })),
    Layer.provide(SqliteClient.layer({ filename }))
  )
// #endregion

// The carts stay when the process ends. Any other layer of `KeyValueStore` works too.
export const stored = (directory: string) =>
  McpServer.layer({ name: "tea-shop", version: "1.0.0" }, ...definitions).pipe(
    Layer.provide(StateStore.layerKeyValue({ prefix: "tea-shop-" })),
    Layer.provide(KeyValueStore.layerFileSystem(directory))
  )
