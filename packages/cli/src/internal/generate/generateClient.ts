/**
 * Runs `generate-client`: lists what a server offers, and writes the module, prints it, or compares it with a file.
 */
import type * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Effect from "effect/Effect"
import { onClient, requestTime, type ServerInvocation, within } from "../connection/connection.ts"
import { sanitize } from "../base/format.ts"
import { readText, replaceText } from "../base/nodeFiles.ts"
import { type CommandFailed, failed, type Process } from "../base/process.ts"
import { clientModule, type Offered } from "./clientModule.ts"

/** A parsed command line of `generate-client`. */
export interface GenerateLine extends ServerInvocation {
  /** The file of the module. Undefined: stdout. */
  readonly out: string | undefined
  readonly check: boolean
  /** How many characters the module has at most. */
  readonly maxChars: number
}

const orEmpty = <A>(list: Effect.Effect<ReadonlyArray<A>, ClientError>): Effect.Effect<ReadonlyArray<A>, ClientError> =>
  Effect.catchReason(list, "ClientError", "Unsupported", () => Effect.succeed<ReadonlyArray<A>>([]))

const offeredBy = (
  client: Client.Client,
  time: Pick<Client.RequestOptions, "timeout" | "maxTimeout">
): Effect.Effect<Offered, ClientError> =>
  Effect.all({
    server: Effect.succeed(client.server?.name),
    tools: orEmpty(client.listTools(time)),
    prompts: orEmpty(client.listPrompts(time)),
    resources: orEmpty(client.listResources(time)),
    templates: orEmpty(client.listResourceTemplates(time))
  })

export const generateClient = (line: GenerateLine): Effect.Effect<void, CommandFailed, Process> =>
  onClient(line, function*(client, console) {
    const { check, maxChars, out } = line
    const offered = yield* within(
      offeredBy(client, requestTime(line)),
      line,
      "The server did not list what it offers"
    )
    const { notes, text } = clientModule(offered)
    for (const note of notes) console.warn(sanitize(note))
    if (text.length > maxChars) {
      return yield* failed(4, `The module has ${text.length} characters, more than --max-chars (${maxChars})`)
    }
    if (out === undefined) return yield* Effect.as(console.print(text), 0)
    if (check) {
      const present = yield* Effect.catch(
        readText(out),
        ({ message, problem }) => problem === "ENOENT" ? Effect.succeed(undefined) : Effect.fail(failed(2, message))
      )
      if (present === text) return 0
      return yield* failed(
        1,
        `${out} ${present === undefined ? "does not exist" : "is not what the server offers now"}: generate it again`
      )
    }
    yield* Effect.mapError(replaceText(out, text), ({ message }) => failed(2, message))
    return 0
  })
