import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region resources
const notes = new Map([["work", ["call Ada"]], ["home", ["buy tea", "water the plants"]]])

// A resource with a fixed URI. The client may cache its contents for a minute.
const folders = Resource.layer(
  Resource.make("notes://folders", { title: "All folders", mimeType: "text/plain", ttlMs: 60_000 }),
  Effect.sync(() => [...notes.keys()].join("\n"))
)

// A template for many URIs. A URI whose variables do not match their schemas does not match the template.
const note = ResourceTemplate.layer(
  ResourceTemplate.make("notes://{folder}/{index}", {
    name: "note",
    mimeType: "text/plain",
    variables: { folder: Schema.Literals(["work", "home"]), index: Schema.NumberFromString }
  }),
  ({ folder, index }, uri) => {
    const text = notes.get(folder)?.[index]
    return text === undefined ? Effect.fail(Resource.notFound(uri)) : Effect.succeed(text)
  },
  // `folder` completes automatically, because its schema consists of literals.
  { complete: { index: (_typed, { folder = "" }) => Object.keys(notes.get(folder) ?? []) } }
)
// #endregion

const write = Tool.layer(
  Tool.make("write", { input: { text: Schema.String } }),
  ({ text }) =>
    Effect.gen(function*() {
      const index = notes.get("home")!.push(text) - 1
      yield* Catalog.updated(`notes://home/${index}`, { parent: "notes://folders" })
      return `Written: notes://home/${index}`
    })
)

export const NoteServer = McpServer.layer(
  // #region caching
  { name: "notes", version: "1.0.0", caching: { "tools/list": { ttlMs: 300_000, cacheScope: "public" } } },
  // #endregion
  folders,
  note,
  write
)
