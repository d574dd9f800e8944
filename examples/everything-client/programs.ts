/**
 * What is done for each scenario of the official conformance suite, outside of authorization.
 *
 * They are short, for they say only what a user wants. That forms are filled with their defaults, that streams are resumed, that headers
 * mirror a request, that a call is made again with what the server asked for: that is for the client to know.
 */
import type * as Client from "@skein/client/Client"
import * as Effect from "effect/Effect"
import { succeeds } from "./call.ts"
import { madeUp } from "./madeUp.ts"
import { toolCalls } from "./toolCalls.ts"

/** What is done with a client. Whatever goes wrong is an error that can be read. */
export type Program = (client: Client.Client) => Effect.Effect<unknown, Error>

const ping: Program = (client) => client.ping()

/** Lists the tools, as a host does first, and calls these. */
const call = (...names: ReadonlyArray<string>): Program => (client) =>
  Effect.andThen(client.listTools(), Effect.forEach(names, (name) => succeeds(client, name), { discard: true }))

export const programs: { readonly [scenario: string]: Program } = {
  // Neither server offers anything, so that asking for more is refused here already.
  initialize: ping,
  "request-metadata": ping,

  tools_call: (client) => Effect.andThen(client.listTools(), succeeds(client, "add_numbers", { a: 5, b: 3 })),

  "elicitation-sep1034-client-defaults": call("test_client_elicitation_defaults"),

  "sse-retry": call("test_reconnection"),

  // At the same time, so that what belongs to one call could end up in another.
  "sep-2322-client-request-state": (client) =>
    Effect.flatMap(
      client.listTools(),
      Effect.forEach(({ name }) => succeeds(client, name), { concurrency: "unbounded", discard: true })
    ),

  "http-standard-headers": (client) =>
    Effect.gen(function*() {
      for (const { name } of yield* client.listTools()) yield* succeeds(client, name)
      for (const { uri } of yield* client.listResources()) yield* client.readResource(uri)
      for (const { name } of yield* client.listPrompts()) yield* client.getPrompt(name)
    }),

  "http-custom-headers": (client) =>
    Effect.gen(function*() {
      yield* client.listTools()
      for (const { arguments: args, name } of yield* toolCalls) yield* succeeds(client, name, args)
    }),

  // Whatever is on the list is called.
  "http-invalid-tool-headers": (client) =>
    Effect.flatMap(
      client.listTools(),
      Effect.forEach((tool) => succeeds(client, tool.name, madeUp(tool.inputSchema)), { discard: true })
    ),

  "json-schema-ref-no-deref": (client) => client.listTools(),

  "json-schema-2020-12-preservation": (client) =>
    Effect.flatMap(client.listTools(), (tools) => {
      const schema = tools.find(({ name }) => name === "json_schema_2020_12_tool")?.inputSchema
      return succeeds(client, "json_schema_echo", { schema })
    })
}
