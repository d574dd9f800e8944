/**
 * A text resource, a binary resource, one to subscribe to, and a template.
 */
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { dot } from "./media.ts"

const text = Resource.layer(
  Resource.make("test://static-text", { name: "static-text", description: "Static text.", mimeType: "text/plain" }),
  Effect.succeed("This is the content of the static text resource.")
)

const binary = Resource.layer(
  Resource.make("test://static-binary", { name: "static-binary", description: "A red pixel.", mimeType: "image/png" }),
  Effect.succeed(dot)
)

const watched = Resource.layer(
  Resource.make("test://watched-resource", {
    name: "watched-resource",
    description: "A resource to subscribe to.",
    mimeType: "text/plain"
  }),
  Effect.succeed("This resource has not changed.")
)

const template = ResourceTemplate.layer(
  ResourceTemplate.make("test://template/{id}/data", {
    name: "template",
    description: "The data for an id.",
    mimeType: "application/json"
  }),
  ({ id }) => Effect.succeed(JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }))
)

export const resources = Layer.mergeAll(text, binary, watched, template)
