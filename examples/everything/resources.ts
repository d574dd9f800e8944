/**
 * Resources of text and of bytes, one that may be watched, and a template.
 */
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { dot } from "./media.ts"

const text = Resource.layer(
  Resource.make("test://static-text", { name: "static-text", description: "Some text.", mimeType: "text/plain" }),
  Effect.succeed("This is the content of the static text resource.")
)

const binary = Resource.layer(
  Resource.make("test://static-binary", { name: "static-binary", description: "A red dot.", mimeType: "image/png" }),
  Effect.succeed(dot)
)

const watched = Resource.layer(
  Resource.make("test://watched-resource", {
    name: "watched-resource",
    description: "One to subscribe to.",
    mimeType: "text/plain"
  }),
  Effect.succeed("Nothing has changed yet.")
)

const template = ResourceTemplate.layer(
  ResourceTemplate.make("test://template/{id}/data", {
    name: "template",
    description: "The data of an id.",
    mimeType: "application/json"
  }),
  ({ id }) => Effect.succeed(JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }))
)

export const resources = Layer.mergeAll(text, binary, watched, template)
