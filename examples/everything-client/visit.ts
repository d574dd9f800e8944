/**
 * A visit to any server: who it is, what it offers, and a little of each.
 *
 * Only what a stranger may do is done: tools are called that say of themselves that they change nothing, and that ask for nothing.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Console from "effect/Console"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { succeeds } from "./call.ts"
import { required } from "./madeUp.ts"

/** Something that the server offers did not work. */
export class VisitFailed extends Data.TaggedError("VisitFailed")<{ readonly message: string }> {}

/** What a server does not have is nothing to complain of. */
const orNone = <A>(list: Effect.Effect<ReadonlyArray<A>, ClientError>): Effect.Effect<ReadonlyArray<A>, ClientError> =>
  Effect.catchReason(list, "ClientError", "Unsupported", () => Effect.succeed([]))

const tell = (what: string, items: ReadonlyArray<{ readonly name: string; readonly description?: string }>) => {
  const lines = items.map(({ description = "", name }) => `  ${name}  ${description}`.trimEnd())
  return Console.log([`${what}: ${items.length}`, ...lines].join("\n"))
}

/** Says what came of it, and whether it went well. */
const attempt = (what: string, effect: Effect.Effect<unknown, Error>): Effect.Effect<boolean> =>
  Effect.matchEffect(effect, {
    onSuccess: (value) => Effect.as(Console.log(`\n${what}: ${JSON.stringify(value)}`), true),
    onFailure: ({ message }) => Effect.as(Console.error(`\n${what} failed: ${message}`), false)
  })

export const visit = (client: Client.Client): Effect.Effect<void, ClientError | VisitFailed> =>
  Effect.gen(function*() {
    const { capabilities, revision, server } = client
    yield* Console.log(`${server?.name ?? "Somebody"} ${server?.version ?? ""} speaks ${revision}`)
    yield* Console.log(`Capabilities: ${Object.keys(capabilities).join(", ")}`)
    const tools = yield* orNone(client.listTools())
    const resources = yield* orNone(client.listResources())
    const templates = yield* orNone(client.listResourceTemplates())
    const prompts = yield* orNone(client.listPrompts())
    yield* tell("Tools", tools)
    yield* tell("Resources", resources)
    yield* tell("Resource templates", templates)
    yield* tell("Prompts", prompts)

    const attempts = [
      ...tools
        .filter(({ annotations, inputSchema }) =>
          annotations?.readOnlyHint === true && required(inputSchema).length === 0
        )
        .map(({ name }) => attempt(`Tool ${name}`, succeeds(client, name))),
      ...resources.map(({ uri }) => attempt(`Resource ${uri}`, client.readResource(uri))),
      ...prompts
        .filter(({ arguments: args = [] }) => args.every(({ required = false }) => !required))
        .map(({ name }) => attempt(`Prompt ${name}`, client.getPrompt(name)))
    ]
    const failed = (yield* Effect.all(attempts)).filter((wentWell) => !wentWell).length
    if (failed > 0) return yield* new VisitFailed({ message: `${failed} of ${attempts.length} attempts failed` })
  })
