/** Our own client. */
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { AnyClient, Block, CallOutcome, Connect } from "./clients.ts"

const blocks = (values: ReadonlyArray<object>): ReadonlyArray<Block> => values as ReadonlyArray<Block>

export const connect: Connect = async (server, revision) => {
  const scope = await Effect.runPromise(Scope.make())
  let pid: number | undefined
  const stdio = Stdio.transport(server)
  const transport = {
    connect: Effect.tap(stdio.connect, (connection) =>
      Effect.sync(() => {
        pid = connection.pid
      }))
  }
  const options = revision === undefined || revision === "auto" ? {} : { revisions: [revision] }
  const client = await Effect.runPromise(Effect.exit(Scope.provide(Client.make(transport, options), scope))).then(
    async (exit) => {
      if (Exit.isSuccess(exit)) return exit.value
      await Effect.runPromise(Scope.close(scope, exit))
      throw exit.cause
    }
  )
  return {
    revision: client.revision,
    serverName: client.server?.name,
    instructions: client.instructions,
    pid,
    complaints: [],
    tools: async () => blocks(await Effect.runPromise(client.allTools)),
    call: async (name, args, { onProgress, signal } = {}) => {
      const call = client.callTool(name, args, {
        onProgress: onProgress === undefined
          ? undefined
          : ({ message, progress, total }) => onProgress({ message, progress, total })
      })
      const result = await Effect.runPromise(call, { signal })
      return { ...result, isError: result.isError === true } as unknown as CallOutcome
    },
    resources: async () => (await Effect.runPromise(client.allResources)).map(({ uri }) => uri),
    templates: async () => (await Effect.runPromise(client.allResourceTemplates)).map(({ uriTemplate }) => uriTemplate),
    read: async (uri) => blocks((await Effect.runPromise(client.readResource(uri))).contents),
    prompts: async () => blocks(await Effect.runPromise(client.allPrompts)),
    prompt: async (name, args) => blocks((await Effect.runPromise(client.getPrompt(name, args))).messages),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  } satisfies AnyClient
}
