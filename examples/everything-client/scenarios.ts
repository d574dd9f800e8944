/**
 * One program for each scenario of the official conformance suite, and one for all scenarios of authorization: the client
 * signs in automatically.
 *
 * The programs are short, since the client does most of the work: it fills in the defaults of forms, resumes streams,
 * sets headers, and repeats calls with the requested input.
 */
import type * as Client from "@skein/client/Client"
import * as RemoteSkill from "@skein/skills/RemoteSkill"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { callTool } from "./callTool.ts"
import { sampleArguments } from "./sampleArguments.ts"
import { toolCalls } from "./toolCalls.ts"

/** A program that uses a connected client. */
export type Program = (client: Client.Client) => Effect.Effect<unknown, Error>

/** Lists the skills, which reads no file of them. */
const listSkills: Program = (client) => RemoteSkill.list(client)

/** Loads each skill and reads its files, as far as they can be verified: a skill that fails is refused as a whole. */
const loadSkills: Program = (client) =>
  Effect.flatMap(
    RemoteSkill.list(client),
    Effect.forEach((entry) =>
      RemoteSkill.load(client, entry).pipe(
        Effect.flatMap(({ paths, read }) => Effect.forEach(paths, read, { discard: true })),
        Effect.catchTag("RemoteSkillError", ({ message }) => Console.error(message))
      ), { discard: true })
  )

const ping: Program = (client) => client.ping()

/** Lists the tools, then calls the given ones. */
const listAndCall = (...names: ReadonlyArray<string>): Program => (client) =>
  Effect.andThen(client.listTools(), Effect.forEach(names, (name) => callTool(client, name), { discard: true }))

/** Lists the tools and calls each of them, which may require more scopes. */
const callAll: Program = (client) =>
  Effect.flatMap(
    client.listTools(),
    Effect.forEach((tool) => callTool(client, tool.name, sampleArguments(tool.inputSchema)), { discard: true })
  )

export const scenarios: { readonly [scenario: string]: Program } = {
  // The servers of these scenarios offer nothing, so the client would refuse any other request.
  initialize: ping,
  "request-metadata": ping,

  tools_call: (client) => Effect.andThen(client.listTools(), callTool(client, "add_numbers", { a: 5, b: 3 })),

  "elicitation-sep1034-client-defaults": listAndCall("test_client_elicitation_defaults"),

  "sse-retry": listAndCall("test_reconnection"),

  // All calls run at the same time, so that a mix-up of their request states would be found.
  "sep-2322-client-request-state": (client) =>
    Effect.flatMap(
      client.listTools(),
      Effect.forEach(({ name }) => callTool(client, name), { concurrency: "unbounded", discard: true })
    ),

  "http-standard-headers": (client) =>
    Effect.gen(function*() {
      for (const { name } of yield* client.listTools()) yield* callTool(client, name)
      for (const { uri } of yield* client.listResources()) yield* client.readResource(uri)
      for (const { name } of yield* client.listPrompts()) yield* client.getPrompt(name)
    }),

  "http-custom-headers": (client) =>
    Effect.gen(function*() {
      yield* client.listTools()
      for (const { arguments: args, name } of yield* toolCalls) yield* callTool(client, name, args)
    }),

  "http-invalid-tool-headers": callAll,

  "json-schema-ref-no-deref": (client) => client.listTools(),

  "json-schema-2020-12-preservation": (client) =>
    Effect.flatMap(client.listTools(), (tools) => {
      const schema = tools.find(({ name }) => name === "json_schema_2020_12_tool")?.inputSchema
      return callTool(client, "json_schema_echo", { schema })
    }),

  "sep-2640-client-no-prefetch": listSkills,
  "sep-2640-client-verify-digest": loadSkills,
  "sep-2640-client-verify-size": loadSkills,
  "sep-2640-client-verify-frontmatter": loadSkills
}

/** The program of a scenario. */
export const programOf = (scenario: string): Program | undefined =>
  scenario.startsWith("auth/") ? callAll : scenarios[scenario]
