/**
 * Explores any server: prints its name and lists, reads its resources and prompts, and calls its tools.
 *
 * It has no side effects: it calls only tools with `readOnlyHint` and without required arguments.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Console from "effect/Console"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { callTool } from "./callTool.ts"
import { requiredNames } from "./sampleArguments.ts"

/** A tool, resource or prompt of the server failed. */
export class ExploreFailed extends Data.TaggedError("ExploreFailed")<{ readonly message: string }> {}

/** Returns an empty list if the server does not support the method. */
const orEmpty = <A>(list: Effect.Effect<ReadonlyArray<A>, ClientError>): Effect.Effect<ReadonlyArray<A>, ClientError> =>
  Effect.catchReason(list, "ClientError", "Unsupported", () => Effect.succeed([]))

const printList = (title: string, items: ReadonlyArray<{ readonly name: string; readonly description?: string }>) => {
  const lines = items.map(({ description = "", name }) => `  ${name}  ${description}`.trimEnd())
  return Console.log([`${title}: ${items.length}`, ...lines].join("\n"))
}

/** Runs an effect and prints its result or error. Returns whether it succeeded. */
const attempt = (title: string, effect: Effect.Effect<unknown, Error>): Effect.Effect<boolean> =>
  Effect.matchEffect(effect, {
    onSuccess: (value) => Effect.as(Console.log(`\n${title}: ${JSON.stringify(value)}`), true),
    onFailure: ({ message }) => Effect.as(Console.error(`\n${title} failed: ${message}`), false)
  })

export const explore = (client: Client.Client): Effect.Effect<void, ClientError | ExploreFailed> =>
  Effect.gen(function*() {
    const { capabilities, revision, server } = client
    yield* Console.log(`${server?.name ?? "Unnamed server"} ${server?.version ?? ""} with revision ${revision}`)
    yield* Console.log(`Capabilities: ${Object.keys(capabilities).join(", ")}`)
    const tools = yield* orEmpty(client.listTools())
    const resources = yield* orEmpty(client.listResources())
    const templates = yield* orEmpty(client.listResourceTemplates())
    const prompts = yield* orEmpty(client.listPrompts())
    yield* printList("Tools", tools)
    yield* printList("Resources", resources)
    yield* printList("Resource templates", templates)
    yield* printList("Prompts", prompts)

    const attempts = [
      ...tools
        .filter(({ annotations, inputSchema }) =>
          annotations?.readOnlyHint === true && requiredNames(inputSchema).length === 0
        )
        .map(({ name }) => attempt(`Tool ${name}`, callTool(client, name))),
      ...resources.map(({ uri }) => attempt(`Resource ${uri}`, client.readResource(uri))),
      ...prompts
        .filter(({ arguments: args = [] }) => args.every(({ required = false }) => !required))
        .map(({ name }) => attempt(`Prompt ${name}`, client.getPrompt(name)))
    ]
    const failed = (yield* Effect.all(attempts)).filter((succeeded) => !succeeded).length
    if (failed > 0) return yield* new ExploreFailed({ message: `${failed} of ${attempts.length} attempts failed` })
  })
